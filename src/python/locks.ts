import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownPackage } from '../own-package.ts'

/** What is installed, to the last package and its hashes: made by scripts/python-locks.ts. */
export const LOCKS: string = join(ownPackage.folder, 'python', 'locks')
/** Of what makes wheels of sources. */
export const BUILD_LOCK = 'build.txt'
export const UV_LOCK = 'uv.txt'

export interface Lock {
  readonly path: string
  /** Short, for names of folders. */
  readonly hash: string
}

/** Undefined: there is none of that name, as for a version that only a cluster asks for. */
export function lockOf(file: string): Lock | undefined {
  const path = join(LOCKS, file)
  if (!existsSync(path)) return undefined
  return { path, hash: createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 8) }
}
