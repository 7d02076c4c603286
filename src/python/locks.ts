import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownPackage } from '../own-package.ts'
import { type Lock, shortHash } from './lock.ts'

/** The lock files of this package. */
export const LOCKS: string = join(ownPackage.folder, 'python', 'locks')

/** Undefined if there is none of this name, as for a version that only a cluster uses. */
export function lockOf(file: string): Lock | undefined {
  const path = join(LOCKS, file)
  return existsSync(path) ? { path, hash: shortHash(readFileSync(path, 'utf8')) } : undefined
}
