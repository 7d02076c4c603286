import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'

/** The first of these programs that can be started: a path, or a name to look up on the PATH. */
export async function findProgram(...candidates: readonly (string | undefined)[]): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  for (const candidate of candidates) {
    if (candidate === undefined) continue
    const paths = candidate.includes('/') ? [candidate] : folders.map((folder) => join(folder, candidate))
    for (const path of paths) if (await isProgram(path)) return resolve(path)
  }
  return undefined
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** A path below the folder that an environment variable names; undefined if the variable is not set. */
export const below = (variable: string, ...path: readonly string[]): string | undefined =>
  process.env[variable] ? join(process.env[variable], ...path) : undefined
