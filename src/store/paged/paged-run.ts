import { ManyworldsError } from '../../errors.ts'
import { ascending } from '../ascending.ts'
import { BlobReader } from '../blobs.ts'
import { readRun } from '../checks.ts'
import type { FoundRun } from '../find-run.ts'
import { keyOf, numberOf } from '../keys.ts'
import { readOverview } from '../overview.ts'
import type { RunInStore } from '../read-connections.ts'
import { type DatabaseSync, prepared } from '../sqlite.ts'
import { storeError } from '../store-errors.ts'
import { type Columns, checkedRow, isWhole } from '../stored-shapes.ts'
import type { RunOverview } from '../stored-task.ts'
import { StoredTrajectoryContext } from '../stored-trajectory-context.ts'

/** The latest rows of a run, by number. What is written later has higher numbers. */
export interface Positions {
  readonly seq: number
  readonly task: number
  readonly grade: number
  /** Counts through the whole store. */
  readonly start: number
}

const POSITIONS = `SELECT (SELECT max(seq) FROM _attempts WHERE seq >= ?1 AND seq < ?2) AS seq,
  (SELECT max(task) FROM _tasks WHERE task >= ?1 AND task < ?2) AS task,
  (SELECT max(grade) FROM _grades WHERE grade >= ?1 AND grade < ?2) AS grade,
  (SELECT max(start) FROM _starts) AS start`

/**
 * A run that is read page by page, for programs that show it while others write it: no statement stays open between two reads. It
 * uses a connection of its caller.
 */
export class PagedRun {
  readonly db: DatabaseSync
  readonly path: string
  readonly runId: string
  /** The number of the run in its store, and when it was created: a later run may get the same number. */
  readonly run: number
  readonly createdAt: number
  readonly blobs: BlobReader
  /** For responses, which read their steps later. */
  readonly from: RunInStore
  readonly around: StoredTrajectoryContext

  constructor(db: DatabaseSync, { path, run }: FoundRun) {
    this.db = db
    this.path = path
    const found = this.reading(() => readRun(db, run))
    this.run = found.run
    this.runId = found.run_id
    this.createdAt = found.created_at
    this.blobs = new BlobReader(db)
    this.from = { path, run: { run: found.run, createdAt: found.created_at }, db: () => (db.isOpen ? db : undefined) }
    this.around = new StoredTrajectoryContext(this.from)
  }

  /** The keys of the run's rows, as [first, end). */
  get range(): readonly [from: number, before: number] {
    return [keyOf(this.run, 0), keyOf(this.run + 1, 0)]
  }

  key(number: number): number {
    return keyOf(this.run, number)
  }

  /** Throws STORE_GONE if the run was removed. */
  overview(): RunOverview {
    const sql = 'SELECT 1 FROM _run WHERE run = ? AND created_at = ? AND run_id = ?'
    if (!this.reading(() => prepared(this.db, sql).get(this.run, this.createdAt, this.runId)))
      throw new ManyworldsError('STORE_GONE', `run '${this.runId}' was removed from ${this.path}`)
    return readOverview(this.db, this.path, this.run)
  }

  positions(): Positions {
    return this.reading(() => {
      const row = prepared(this.db, POSITIONS).get(...this.range) as Record<keyof Positions, number | null>
      const { seq, task, grade, start } = row
      return { seq: numberOf(seq ?? 0), task: numberOf(task ?? 0), grade: numberOf(grade ?? 0), start: start ?? 0 }
    })
  }

  rows<Row extends object>(sql: string, columns: Columns<Row>, what: string, ...values: (string | number)[]): Row[] {
    return this.reading(() => {
      const rows = prepared(this.db, sql).all(...values)
      for (const row of rows) checkedRow(row, columns, what)
      return rows as unknown as Row[]
    })
  }

  /** At most `limit` rows of the run after a number. The statement takes the key to read after, the end of the run, and the limit. */
  page<Row extends object>(
    after: number,
    numberOf: (row: Row) => number,
    ...[sql, columns, what, limit]: [sql: string, columns: Columns<Row>, what: string, limit: number]
  ): Row[] {
    const rows = this.rows(sql, columns, what, this.key(after), this.range[1], limit)
    return this.reading(() => ascending(rows, numberOf, after, what))
  }

  row<Row extends object>(
    sql: string,
    columns: Columns<Row>,
    what: string,
    ...values: (string | number)[]
  ): Row | undefined {
    return this.reading(() => {
      const row = prepared(this.db, sql).get(...values)
      return row && checkedRow(row, columns, what)
    })
  }

  count(sql: string, ...values: number[]): number {
    return this.row<{ n: number }>(sql, { n: isWhole }, 'a count', ...values)!.n
  }

  /** Decodes a stored value with a budget of its own. */
  value(stored: unknown): unknown {
    return this.reading(() => {
      this.blobs.refill()
      return this.blobs.read(stored)
    })
  }

  /** Turns any error into a ManyworldsError. */
  reading<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw storeError(error, this.path, 'read')
    }
  }
}
