import { existsSync, rmSync } from 'node:fs'
import { DatabaseSync } from './sqlite.ts'
import { isBusy } from './store-errors.ts'

const LOOKING_MS = 250

/**
 * A kernel file lock on an empty file, taken through SQLite because Node has no API for it. The kernel releases it when the
 * process ends, however it ends, and unlike a pid file it cannot be confused by a reused process id.
 */
export class RunLock {
  readonly #path: string
  readonly #db: DatabaseSync

  private constructor(path: string, db: DatabaseSync) {
    this.#path = path
    this.#db = db
  }

  /** Returns undefined if another process has the lock. */
  static take(runFile: string): RunLock | undefined {
    const path = lockPath(runFile)
    for (;;) {
      // `isLocked` in another process may hold the lock for a moment.
      const db = new DatabaseSync(path, { timeout: LOOKING_MS })
      try {
        db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      } catch (error) {
        db.close()
        if (isBusy(error)) return undefined
        throw error
      }
      if (existsSync(path)) return new RunLock(path, db)
      // Its owner removed the file after we opened it, so our lock has no effect. Try again.
      db.close()
    }
  }

  /** Another process may have opened the file before it was removed. In that case the epoch protects the run (`RunWriter`). */
  release(): void {
    rmSync(this.#path, { force: true })
    this.#db.close()
  }

  /** Closes the file without removing it: another process owns it. */
  leave(): void {
    this.#db.close()
  }
}

/** Whether a living process holds the lock. */
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
