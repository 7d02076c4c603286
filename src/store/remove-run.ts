import { rmSync } from 'node:fs'
import type { FoundRun } from './find-run.ts'
import { keyOf, REMOVED, STEP_SPAN } from './keys.ts'
import { lockPath } from './lock.ts'
import { lastSession } from './run-writer.ts'
import { StoreDb } from './store-db.ts'
import { corrupt, storeError } from './store-errors.ts'

/** The most that one transaction removes. Large runs are removed in pieces so that other drivers can write in between. */
const PIECE_ROWS = 5000
const PIECE_BYTES = 16 * 1024 * 1024
/** Pages that one transaction returns to the file system. */
export const PIECE_PAGES = 2000
/** The pause between two pieces. SQLite has no queue for writers: those that wait poll every few milliseconds. */
const PAUSE_MS = 10

/** Removes runs that are not in progress: their rows from the store, or their files. */
export function removeRuns(runs: readonly FoundRun[]): void {
  for (const { path, run } of runs) if (run === undefined) removeFile(path)
  for (const path of new Set(runs.filter(({ run }) => run !== undefined).map((found) => found.path)))
    removeFromStore(
      path,
      runs.flatMap((found) => (found.path === path && found.run !== undefined ? [found.run] : [])),
    )
}

function removeFromStore(path: string, runs: readonly number[]): void {
  try {
    const store = StoreDb.open(path, true)
    try {
      for (const run of [...runs, ...partlyRemoved(store)]) while (removePiece(store, run) === 'more') pause()
      while (store.returnFreePages(PIECE_PAGES)) pause()
    } finally {
      store.close(false)
    }
  } catch (error) {
    throw storeError(error, path, 'write')
  }
}

/** Runs whose removal was cut short. */
export function partlyRemoved(store: StoreDb): number[] {
  const rows = store.statement('SELECT run FROM _run WHERE run_id >= ? AND run_id < ?').all(REMOVED, `${REMOVED}~`)
  return rows.map(({ run }) => run as number)
}

/**
 * Removes a run, or a piece of it, in one transaction. `more`: some rows are left, and the run can no longer be found by its
 * id. `busy`: the run is in progress, so nothing was removed.
 */
export function removePiece(store: StoreDb, run: number): 'gone' | 'more' | 'busy' {
  return store.transact(false, () => {
    if (isBeingWritten(store, run)) return 'busy'
    if (new Piece(store, run).remove()) {
      store.statement('DELETE FROM _run WHERE run = ?').run(run)
      return 'gone'
    }
    // With another created_at, responses that a program still holds throw STORE_GONE instead of reading partial steps.
    store.statement('UPDATE _run SET run_id = ?, created_at = 0 WHERE run = ?').run(`${REMOVED}${run}`, run)
    return 'more'
  })
}

/** The tables of a run: name, key column, and the size of a row's large values. */
export const TABLES = [
  ['_starts', 'task', '0'],
  ['_attempts', 'seq', '0'],
  ['_answers', 'answer', '0'],
  ['_grades', 'grade', '0'],
  ['_tasks', 'task', '0'],
  ['_agents', 'agent', '0'],
  ['_workers', 'worker', '0'],
  ['_blobs', 'blob', 'octet_length(data)'],
  ['_sessions', 'epoch', '0'],
] as const
const STEP_BYTES = 'coalesce(octet_length(record), 0) + coalesce(octet_length(numbers), 0)'

/** Removes rows until the budget of a transaction is used up. */
class Piece {
  readonly #store: StoreDb
  readonly #run: number
  #rows = PIECE_ROWS
  #bytes = PIECE_BYTES

  constructor(store: StoreDb, run: number) {
    this.#store = store
    this.#run = run
  }

  /** Returns true if nothing is left. */
  remove(): boolean {
    const range = [keyOf(this.#run, 0), keyOf(this.#run + 1, 0)] as const
    if (!this.#removeSteps(range)) return false
    for (const [table, key, bytes] of TABLES) if (!this.#removeFrom(table, key, bytes, range)) return false
    return true
  }

  #removeSteps(range: readonly [number, number]): boolean {
    const starts = this.#store.statement('SELECT start FROM _starts WHERE task >= ? AND task < ? LIMIT ?')
    for (;;) {
      const found = starts.all(...range, this.#rows) as { start: number }[]
      if (found.length === 0) return true
      for (const { start } of found) {
        if (!this.#removeFrom('_steps', 'key', STEP_BYTES, [start * STEP_SPAN, (start + 1) * STEP_SPAN])) return false
        const { changes } = this.#store.statement('DELETE FROM _starts WHERE start = ?').run(start)
        if (changes === 0) throw this.#damaged('_starts')
        if (--this.#rows <= 0) return false
      }
    }
  }

  /** Returns true if nothing of the range is left. */
  #removeFrom(table: string, key: string, bytes: string, [from, before]: readonly [number, number]): boolean {
    const rows = this.#store.statement(
      `SELECT ${key} AS key, ${bytes} AS bytes FROM ${table} WHERE ${key} >= ? AND ${key} < ? ORDER BY ${key} LIMIT ?`,
    )
    let end = before
    let found = 0
    for (const row of rows.all(from, before, this.#rows + 1) as { key: number; bytes: number }[]) {
      if (this.#rows <= 0 || this.#bytes <= 0) {
        end = row.key
        break
      }
      found++
      this.#rows--
      this.#bytes -= row.bytes
    }
    const { changes } = this.#store.statement(`DELETE FROM ${table} WHERE ${key} >= ? AND ${key} < ?`).run(from, end)
    if (found > 0 && changes === 0) throw this.#damaged(table)
    return end === before
  }

  /** Rows that are found and cannot be removed would be tried again without end. */
  #damaged(table: string): Error {
    return corrupt(this.#store.path, `rows of ${table} cannot be removed`)
  }
}

function isBeingWritten(store: StoreDb, run: number): boolean {
  const last = lastSession(store, run)
  return last !== undefined && last.endedAt === null && store.isAlive(last.owner)
}

/** Lets other drivers write. */
export function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
}

/** Removes a file and everything that SQLite keeps beside it. */
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
