import { existsSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import type { FoundRun } from './find-run.ts'
import { keyOf, RUN_SPAN, STEP_SPAN } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import { isSharedStore } from './run-path.ts'
import { newRunNumber } from './run-writer.ts'
import type { DatabaseSync } from './sqlite.ts'
import { StoreDb } from './store-db.ts'
import { storeError } from './store-errors.ts'

/** Columns with a key of the same run; and those with a value that may be the number of a blob. */
const TABLES: readonly { table: string; keys: readonly string[]; values: readonly string[] }[] = [
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

/**
 * Copies a run with all that belongs to it into another store, under a new number there. The run must not be going on:
 * what is copied is what is there at this moment.
 */
export function copyRun(from: FoundRun, path: string): void {
  const shared = isSharedStore(path)
  if (!shared && existsSync(path))
    throw new ManyworldsError('RUN_EXISTS', `${path} exists already; give another path, or remove it first`)
  using source = openForReading(from.path)
  let target: StoreDb | undefined
  try {
    target = StoreDb.open(path, shared)
    const store = target
    store.transact(true, () => copy(source, from, store, shared))
  } catch (error) {
    throw storeError(error, path, 'write')
  } finally {
    target?.close(!shared)
  }
}

function copy(source: DatabaseSync, from: FoundRun, target: StoreDb, shared: boolean): void {
  const run = source.prepare('SELECT * FROM _run WHERE run = coalesce(?, run)').get(from.run ?? null) as
    | (Record<string, never> & { run: number; run_id: string })
    | undefined
  if (!run) throw new ManyworldsError('RUN_NOT_FOUND', `there is no run '${from.runId}' in ${from.path}`)
  if (target.statement('SELECT 1 FROM _run WHERE run_id = ?').get(run.run_id))
    throw new ManyworldsError('RUN_EXISTS', `${target.path} has a run '${run.run_id}' already; remove that first`)
  const number = newRunNumber(target, shared)
  const move = (key: unknown) => (typeof key === 'number' ? (key % RUN_SPAN) + keyOf(number, 0) : key)
  const insert = (table: string, row: Record<string, unknown>) => {
    const columns = Object.keys(row)
    const places = columns.map(() => '?').join(', ')
    target
      .statement(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`)
      .run(...(Object.values(row) as never[]))
  }
  const range = [keyOf(run.run, 0), keyOf(run.run + 1, 0)] as const
  insert('_run', { ...run, run: number })
  const starts = new Map<number, number>()
  for (const { table, keys, values } of TABLES) {
    const rows = source.prepare(`SELECT * FROM ${table} WHERE ${keys[0]} >= ? AND ${keys[0]} < ?`).iterate(...range)
    for (const row of rows as Iterable<Record<string, unknown>>) {
      const copied = { ...row }
      for (const key of keys) copied[key] = move(row[key])
      // As integers, because SQLite would take a number for a REAL in a column without a type.
      for (const value of values) if (typeof row[value] === 'number') copied[value] = BigInt(move(row[value]) as number)
      if (typeof row.start === 'number') copied.start = startOf(row.start, starts, target)
      insert(table, copied)
    }
  }
  for (const [before, after] of starts) copySteps(source, before, after, (row) => insert('_steps', row), move)
}

function startOf(start: number, starts: Map<number, number>, target: StoreDb): number {
  let copied = starts.get(start)
  if (copied === undefined) starts.set(start, (copied = target.nextStart()))
  return copied
}

function copySteps(
  source: DatabaseSync,
  before: number,
  after: number,
  insert: (row: Record<string, unknown>) => void,
  move: (key: unknown) => unknown,
): void {
  const rows = source.prepare('SELECT * FROM _steps WHERE key >= ? AND key < ?')
  for (const row of rows.iterate(before * STEP_SPAN, (before + 1) * STEP_SPAN) as Iterable<
    Record<string, unknown> & { key: number }
  >) {
    const record = typeof row.record === 'number' ? BigInt(move(row.record) as number) : row.record
    insert({ ...row, key: after * STEP_SPAN + (row.key % STEP_SPAN), record })
  }
}
