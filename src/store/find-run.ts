import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { defaultStore, isRunFile, runIdOfPath } from './run-path.ts'
import { storeError } from './store-errors.ts'

/** Where run files are looked for: what MANYWORLDS_STORE says, or `.manyworlds/runs` here. */
export function runFolder(store?: string): string {
  return resolve(store ?? (defaultStore() || '.manyworlds/runs'))
}

/** Paths of the run files of a folder, the newest last. */
export function runFiles(folder: string): string[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') throw notFound(`${folder} is not a folder`)
    throw storeError(error, folder, 'read')
  }
  return names
    .filter(isRunFile)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map((path) => ({ path, time: changedAt(path) }))
    .sort((a, b) => a.time - b.time || (a.path < b.path ? -1 : 1))
    .map(({ path }) => path)
}

/** The file of a run, by its id, the beginning of it, `last`, or its path. */
export function findRun(run: string, folder: string): string {
  if (run === '') throw notFound('no run was named')
  if (isRunFile(run) && statSync(run, { throwIfNoEntry: false })?.isFile()) return resolve(run)
  if (run.includes('/')) throw notFound(`there is no run file ${run}`)
  const files = runFiles(folder)
  if (files.length === 0) throw notFound(`there are no runs in ${folder} yet`)
  if (run === 'last') return files.at(-1)!
  const exact = files.find((path) => runIdOfPath(path) === run)
  const alike = exact ? [exact] : files.filter((path) => runIdOfPath(path).startsWith(run))
  if (alike.length === 1) return alike[0]!
  if (alike.length > 1) throw notFound(`several runs begin with '${run}': ${names(alike)}; write more of the id`)
  throw notFound(`there is no run '${run}' in ${folder}; the latest are ${names(files)}. \`manyworlds runs\` lists all`)
}

/** A run writes to its log, not always to the file. An empty log is made by those who only look. */
function changedAt(path: string): number {
  const file = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return log && log.size > 0 ? Math.max(file, log.mtimeMs) : file
}

const names = (paths: readonly string[]) => paths.slice(-5).map(runIdOfPath).reverse().join(', ')
const notFound = (what: string) => new ManyworldsError('RUN_NOT_FOUND', what)
