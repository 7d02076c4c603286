import { rmSync } from 'node:fs'
import type { FoundRun } from './find-run.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import { lockPath } from './lock.ts'
import { lastSession } from './run-writer.ts'
import { StoreDb } from './store-db.ts'
import { storeError } from './store-errors.ts'

/** Removes a run that nobody writes: its rows from the store, or its file. */
export function removeRun({ path, run }: FoundRun): void {
  if (run === undefined) return removeFile(path)
  try {
    const store = StoreDb.open(path, true)
    try {
      store.transact(false, () => deleteRun(store, run))
      store.db.exec('PRAGMA incremental_vacuum')
    } finally {
      store.close(false)
    }
  } catch (error) {
    throw storeError(error, path, 'write')
  }
}

/** Inside a transaction. False: it is being written, and stays. */
export function deleteRun(store: StoreDb, run: number): boolean {
  const { db } = store
  if (isBeingWritten(store, run)) return false
  const range = [keyOf(run, 0), keyOf(run + 1, 0)] as const
  const ofStart = db.prepare('DELETE FROM _steps WHERE key >= ? AND key < ?')
  for (const { start } of db.prepare('SELECT start FROM _starts WHERE task >= ? AND task < ?').all(...range) as {
    start: number
  }[])
    ofStart.run(start * STEP_SPAN, (start + 1) * STEP_SPAN)
  for (const [table, key] of KEYS) db.prepare(`DELETE FROM ${table} WHERE ${key} >= ? AND ${key} < ?`).run(...range)
  db.prepare('DELETE FROM _run WHERE run = ?').run(run)
  return true
}

/** Tables whose keys lie in the range of their run. */
export const KEYS = [
  ['_starts', 'task'],
  ['_attempts', 'seq'],
  ['_answers', 'answer'],
  ['_grades', 'grade'],
  ['_tasks', 'task'],
  ['_agents', 'agent'],
  ['_workers', 'worker'],
  ['_blobs', 'blob'],
  ['_sessions', 'epoch'],
] as const

function isBeingWritten(store: StoreDb, run: number): boolean {
  const last = lastSession(store, run)
  return last !== undefined && last.endedAt === null && store.isAlive(last.owner)
}

/** A file with all that SQLite keeps beside it. */
export function removeFile(path: string): void {
  for (const file of [
    path,
    `${path}-wal`,
    `${path}-shm`,
    `${path}-journal`,
    lockPath(path),
    `${lockPath(path)}-journal`,
  ])
    rmSync(file, { force: true })
}
