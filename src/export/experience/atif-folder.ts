import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { safeJson } from '../../text/json.ts'
import type { AtifTrajectory } from '../atif/document.ts'
import type { Table } from '../columns.ts'
import { failed } from '../out-file.ts'
import type { ExportRow } from './experience-table.ts'

/** File systems allow names of up to 255 bytes. */
const MOST_CHARS = 200

/** Writes each document to its own file, in a folder that appears only when it is complete. Returns the number of files. */
export async function exportToFolder(
  table: Table<never>,
  path: string,
  { force, signal }: { readonly force: boolean; readonly signal: AbortSignal },
): Promise<number> {
  const folder = resolve(path)
  await refuseFull(path, folder, force)
  const partial = join(dirname(folder), `.${basename(folder)}.${randomBytes(4).toString('hex')}.partial`)
  let files = 0
  try {
    await mkdir(partial, { recursive: true })
    for await (const made of table.rows()) {
      signal.throwIfAborted()
      const { row, trajectory } = made as ExportRow<AtifTrajectory>
      const run = table.runOf?.(made)
      const id = run === undefined ? trajectory.id : `${run}.${trajectory.id}`
      await writeFile(join(partial, fileName(id, ++files)), `${safeJson(JSON.stringify(row, null, 2))}\n`)
    }
    signal.throwIfAborted()
    await rm(folder, { recursive: true, force: true })
    await rename(partial, folder)
    return files
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    if (signal.aborted || ManyworldsError.is(error)) throw error
    throw failed(path, (error as Error).message, error)
  }
}

/** `--force` replaces a folder of such files, but never one with other files. */
async function refuseFull(path: string, folder: string, force: boolean): Promise<void> {
  const there = await lstat(folder).catch(() => undefined)
  if (there === undefined) return
  if (!there.isDirectory()) throw failed(path, 'the path exists and is not a folder')
  const names = await readdir(folder)
  if (names.length > 0 && !force) throw failed(path, 'the folder is not empty; use --force to replace it')
  const other = names.find((name) => !name.endsWith('.json'))
  if (other !== undefined)
    throw failed(path, `the folder also contains other files, such as ${other}; give another folder`)
}

/** A file name from the id of a trajectory, which may contain slashes and the like. */
function fileName(id: string, number: number): string {
  const name = encodeURIComponent(id.toWellFormed()).replace(/^\./, '%2E')
  return `${name.length > MOST_CHARS ? `${name.slice(0, MOST_CHARS)}-${number}` : name}.json`
}
