import { hash } from 'node:crypto'

/** A file that says what is installed, to the last package and its hashes; made by scripts/python-locks.ts. */
export interface Lock {
  readonly path: string
  /** Short, for names of folders. */
  readonly hash: string
}

export const shortHash = (text: string): string => hash('sha256', text).slice(0, 8)
