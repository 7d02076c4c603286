import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** One level after the other: with `recursive`, Node tries for ever where a file system creates no folders (/proc). */
export function makeFolders(path: string, mode?: number): void {
  if (existsSync(path)) return
  makeFolders(dirname(path), mode)
  makeFolder(path, mode)
}

/** Another process may have made it. */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
