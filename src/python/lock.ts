import { hash } from 'node:crypto'

/** A file that lists the exact packages to install, with hashes; made by scripts/python-locks.ts. */
export interface Lock {
  readonly path: string
  /** A short hash, for folder names. */
  readonly hash: string
}

export const shortHash = (text: string): string => hash('sha256', text).slice(0, 8)
