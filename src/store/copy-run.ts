import { existsSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import type { FoundRun } from './find-run.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import { removeFile } from './remove-run.ts'
import { isSharedStore } from './run-path.ts'
import { newRunNumber } from './run-writer.ts'
import type { DatabaseSync } from './sqlite.ts'
import { StoreDb } from './store-db.ts'
import { isConflict, storeError } from './store-errors.ts'
import { isWhole } from './stored-shapes.ts'

/**
 * The tables of a run. `keys`: columns that hold keys of the run; the first decides which run a row belongs to.
 * `values`: columns that may hold a blob number.
 */
export const TABLES: readonly { table: string; keys: readonly string[]; values: readonly string[] }[] = [
  { table: '_sessions', keys: ['epoch'], values: [] },
  { table: '_agents', keys: ['agent'], values: ['params'] },
  { table: '_workers', keys: ['worker'], values: [] },
  { table: '_blobs', keys: ['blob'], values: [] },
  { table: '_tasks', keys: ['task', 'parent', 'agent'], values: ['input', 'info'] },
  {
    table: '_attempts',
    keys: ['seq', 'task', 'worker'],
    values: ['answer', 'error', 'trajectory', 'logs', 'final_observation'],
  },
  { table: '_starts', keys: ['task', 'worker'], values: [] },
  { table: '_answers', keys: ['answer', 'task'], values: ['value'] },
  { table: '_grades', keys: ['grade', 'task'], values: ['record'] },
]

const STARTS = 'SELECT start FROM _starts WHERE task >= ? AND task < ? ORDER BY start'

type AnyRow = Record<string, unknown>

/**
 * Copies a run into another store, where it gets a new number. A run in progress is copied in its current state. If the
 * copy fails, its partial rows or file are removed.
 */
export function copyRun(from: FoundRun, path: string): void {
  const shared = isSharedStore(path)
  if (!shared && existsSync(path))
    throw new ManyworldsError('RUN_EXISTS', `${path} already exists; give another path, or remove the file first`)
  using source = openForReading(from.path)
  let target: StoreDb | undefined
  let copied = false
  try {
    target = StoreDb.open(path, shared)
    const store = target
    // Checkpoint first: if the disk fills up during the copy, SQLite can then truncate its log.
    store.checkpoint()
    store.transact(true, () => new RunCopy(source, from, store, shared).copy())
    copied = true
  } catch (error) {
    throw copyError(error, from, path)
  } finally {
    target?.close(!shared)
    if (!shared && !copied) removeFile(path)
  }
}

function copyError(error: unknown, { runId }: FoundRun, path: string): ManyworldsError {
  const known = storeError(error, path, 'write')
  if (known.code !== 'STORE_FULL') return known
  const text = `the disk is full: run '${runId}' was not copied to ${path}. Free some space and copy it again`
  return new ManyworldsError('STORE_FULL', text, { cause: error })
}

class RunCopy {
  readonly #source: DatabaseSync
  readonly #from: FoundRun
  readonly #target: StoreDb
  readonly #shared: boolean
  /** New numbers of starts, which are numbered across the whole store. */
  readonly #starts = new Map<number, number>()
  /** The run's keys in the source, as [first, end), and its first key in the target. */
  #range: readonly [from: number, before: number] = [0, 0]
  #base = 0

  constructor(source: DatabaseSync, from: FoundRun, target: StoreDb, shared: boolean) {
    this.#source = source
    this.#from = from
    this.#target = target
    this.#shared = shared
  }

  copy(): void {
    // One read transaction for all tables, because the run may be in progress.
    this.#reading(() => this.#source.exec('BEGIN'))
    const run = this.#run()
    const number = newRunNumber(this.#target, this.#shared)
    this.#range = [keyOf(run.run, 0), keyOf(run.run + 1, 0)]
    this.#base = keyOf(number, 0)
    // The copy belongs to no training, because the training is not copied.
    this.#insert('_run', { ...run, run: number, training: null })
    // Number the starts in their original order.
    for (const { start } of this.#rows(STARTS, ...this.#range)) this.#movedStart(start, '`start` of _starts')
    for (const { table, keys, values } of TABLES)
      for (const row of this.#rows(`SELECT * FROM ${table} WHERE ${keys[0]} >= ? AND ${keys[0]} < ?`, ...this.#range))
        this.#insert(table, this.#moved(table, row, keys, values))
    for (const [before, after] of this.#starts) this.#copySteps(before, after)
  }

  #run(): AnyRow & { run: number } {
    const { run: number, runId, path } = this.#from
    const sql = 'SELECT * FROM _run WHERE run = coalesce(?, run)'
    const run = this.#reading(() => this.#source.prepare(sql).get(number ?? null))
    if (!run) throw new ManyworldsError('RUN_NOT_FOUND', `no run '${runId}' in ${path}`)
    if (!isWhole(run.run)) throw this.#damaged('`run` of _run is not a whole number')
    const { path: target } = this.#target
    if (this.#target.statement('SELECT 1 FROM _run WHERE run_id = ?').get(run.run_id as string))
      throw new ManyworldsError('RUN_EXISTS', `${target} already has a run '${String(run.run_id)}'; remove it first`)
    return run as AnyRow & { run: number }
  }

  #moved(table: string, row: AnyRow, keys: readonly string[], values: readonly string[]): AnyRow {
    const moved: AnyRow = { ...row }
    const what = (column: string) => `\`${column}\` of ${table}`
    for (const key of keys) if (row[key] !== null) moved[key] = this.#movedKey(row[key], what(key))
    for (const value of values) moved[value] = this.#movedValue(row[value], what(value))
    if ('start' in row && row.start !== null) moved.start = this.#movedStart(row.start, what('start'))
    // The driver that owns the original does not own the copy.
    if (table === '_sessions') moved.owner = null
    return moved
  }

  #movedKey(key: unknown, what: string): number {
    const [from, before] = this.#range
    if (!isWhole(key) || (key as number) < from || (key as number) >= before)
      throw this.#damaged(`${what} is ${String(key)}, which is not a key of this run`)
    return (key as number) - from + this.#base
  }

  /** A bigint, because node:sqlite would bind a number as REAL in a column without a type. */
  #movedValue(value: unknown, what: string): unknown {
    return typeof value === 'number' ? BigInt(this.#movedKey(value, what)) : value
  }

  #movedStart(start: unknown, what: string): number {
    if (!isWhole(start)) throw this.#damaged(`${what} is ${String(start)}`)
    let moved = this.#starts.get(start as number)
    if (moved === undefined) this.#starts.set(start as number, (moved = this.#target.nextStart()))
    return moved
  }

  #copySteps(before: number, after: number): void {
    const sql = 'SELECT * FROM _steps WHERE key >= ? AND key < ?'
    for (const row of this.#rows(sql, before * STEP_SPAN, (before + 1) * STEP_SPAN))
      this.#insert('_steps', {
        ...row,
        key: after * STEP_SPAN + ((row.key as number) % STEP_SPAN),
        record: this.#movedValue(row.record, '`record` of _steps'),
      })
  }

  *#rows(sql: string, ...range: readonly number[]): Generator<AnyRow> {
    const rows = this.#reading(() => this.#source.prepare(sql).iterate(...range))
    for (;;) {
      const { done, value } = this.#reading(() => rows.next())
      if (done) return
      yield value as AnyRow
    }
  }

  #insert(table: string, row: AnyRow): void {
    const columns = Object.keys(row)
    const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    try {
      this.#target.statement(sql).run(...(Object.values(row) as never[]))
    } catch (error) {
      // The target schema accepts every row that a run writes, so the row itself is damaged.
      throw isConflict(error) ? storeError(error, this.#from.path, 'read') : error
    }
  }

  #reading<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw storeError(error, this.#from.path, 'read')
    }
  }

  #damaged(what: string): ManyworldsError {
    return storeError(new Error(what), this.#from.path, 'read')
  }
}
