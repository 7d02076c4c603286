import { existsSync, rmSync } from 'node:fs'
import { DatabaseSync } from './sqlite.ts'
import { isBusy } from './store-errors.ts'

const LOOKING_MS = 250

/**
 * One owner per run file. The lock is the kernel's, on an empty file beside the run file, taken through SQLite because
 * Node has no call for it: it is gone the moment its process is, however that ended, and no process id that was used
 * again can be mistaken for the owner.
 */
export class RunLock {
  readonly #path: string
  readonly #db: DatabaseSync

  private constructor(path: string, db: DatabaseSync) {
    this.#path = path
    this.#db = db
  }

  /** Undefined: somebody else has it. */
  static take(runFile: string): RunLock | undefined {
    const path = lockPath(runFile)
    for (;;) {
      // Somebody who only looks whether it is locked holds it for a moment.
      const db = new DatabaseSync(path, { timeout: LOOKING_MS })
      try {
        db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      } catch (error) {
        db.close()
        if (isBusy(error)) return undefined
        throw error
      }
      if (existsSync(path)) return new RunLock(path, db)
      // Its owner removed it between our opening and our locking: it locks nothing any more.
      db.close()
    }
  }

  /** Others may have opened the file meanwhile; should one of them get a lock on it, the epoch tells (`RunWriter`). */
  release(): void {
    rmSync(this.#path, { force: true })
    this.#db.close()
  }

  /** It was of no use: somebody else owns the run, and the file. */
  leave(): void {
    this.#db.close()
  }
}

/** Whether the run is being written at this moment. */
export function isLocked(runFile: string): boolean {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(lockPath(runFile), { readOnly: true })
    db.exec('BEGIN; SELECT * FROM sqlite_schema')
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    db?.close()
  }
}

export const lockPath = (runFile: string): string => `${runFile}-lock`
