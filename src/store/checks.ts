import { ManyworldsError } from '../errors.ts'
import { MOST_RUNS } from './keys.ts'
import type { RunHeader } from './messages.ts'
import { makeTables } from './migrations.ts'
import { APPLICATION_ID, SCHEMA_VERSION } from './schema.ts'
import { DatabaseSync, prepared } from './sqlite.ts'
import { corrupt, notAStore } from './store-errors.ts'
import { type Columns, checkedRow, isNumber, isText, isTime, isWhole, orNull } from './stored-shapes.ts'

/** Runs SQLite's quick_check before a resume. Only for files of one run: it reads the whole file. */
export function quickCheck(db: DatabaseSync, path: string): void {
  const [first] = db.prepare('PRAGMA quick_check(1)').all() as { quick_check: string }[]
  if (first?.quick_check !== 'ok') throw corrupt(path, first?.quick_check ?? 'quick_check returned nothing')
}

export const pragma = (db: DatabaseSync, name: string): number =>
  Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0] as number

export const schemaVersion = (db: DatabaseSync): number => pragma(db, 'user_version')

/** Refuses files that are not ours, of a newer version, or whose schema is not exactly the one we create. */
export function refuseOtherSchema(db: DatabaseSync, path: string): void {
  if (pragma(db, 'application_id') !== APPLICATION_ID) throw someOtherDatabase(db, path)
  const version = schemaVersion(db)
  if (version > SCHEMA_VERSION)
    throw new ManyworldsError(
      'STORE_NEWER',
      `${path} was written by a newer manyworlds (schema ${version}; this one reads up to ${SCHEMA_VERSION}). Update manyworlds, or use another folder: \`store\` (--store)`,
    )
  const wrong = schemaProblem(db, version)
  if (wrong !== undefined) throw corrupt(path, wrong)
}

/** The error for a file with another `application_id`: it names some tables, by which the user may know the file. */
function someOtherDatabase(db: DatabaseSync, path: string): ManyworldsError {
  const tables = [...schemaRows(db, MAX_SCHEMA_ROWS)].flatMap(({ type, name }) => (type === 'table' ? [name] : []))
  const shown = tables.slice(0, 3).map((name) => `\`${name.slice(0, 40)}\``)
  const of =
    shown.length === 0
      ? ''
      : ` with the table${shown.length === 1 ? '' : 's'} ${shown.join(', ')}${tables.length > 3 ? ', …' : ''}`
  return notAStore(path, `another SQLite database${of}`)
}

interface SchemaRow {
  readonly type: string
  readonly name: string
  readonly table: string
  readonly sql: string
}

/** How many schema entries are read at most. Users may have added some of their own. */
const MAX_SCHEMA_ROWS = 1000
const ourSchemas = new Map<number, ReadonlyMap<string, string>>()

/**
 * Compares the schema with the one we create. A view in place of a table, a generated column or a trigger is code that runs
 * when the file is read or written, and it may never end. So our tables and indexes must match exactly. Views and tables
 * that a user has added are allowed, because we never use them.
 */
function schemaProblem(db: DatabaseSync, version: number): string | undefined {
  let ours = ourSchemas.get(version)
  if (ours === undefined) ourSchemas.set(version, (ours = schemaOfNewFile(version)))
  const missing = new Map(ours)
  for (const { type, name, table, sql } of schemaRows(db, MAX_SCHEMA_ROWS)) {
    if (missing.get(`${type} ${name}`) === withoutSpaces(sql)) missing.delete(`${type} ${name}`)
    else if (type === 'trigger') return `it has a trigger (\`${name}\`), which a run file never has`
    else if (name.startsWith('_') || table.startsWith('_'))
      return `its ${type} \`${name}\` does not match the schema of a run file`
  }
  const [first] = missing.keys()
  return first === undefined ? undefined : `its ${first} is missing`
}

function schemaOfNewFile(version: number): ReadonlyMap<string, string> {
  using db = new DatabaseSync(':memory:')
  makeTables(db, 0, version)
  return new Map(
    Array.from(schemaRows(db, MAX_SCHEMA_ROWS), ({ type, name, sql }) => [`${type} ${name}`, withoutSpaces(sql)]),
  )
}

const schemaRows = (db: DatabaseSync, limit: number) =>
  db
    .prepare(
      `SELECT type, name, tbl_name AS "table", coalesce(sql, '') AS sql FROM sqlite_schema
       WHERE typeof(name) = 'text' AND typeof(tbl_name) = 'text' ORDER BY rowid LIMIT ?`,
    )
    .iterate(limit) as Iterable<SchemaRow>

const withoutSpaces = (sql: string) => String(sql).replaceAll(/\s+/g, '')

/** A row of `_run`. */
export interface RunColumns {
  readonly run: number
  readonly run_id: string
  readonly created_at: number
  readonly script: string | null
  readonly seed: number
  readonly sequence_dependent: number
  readonly total: number | null
  readonly epoch: number
  readonly success: number
  readonly failed: number
  readonly timeout: number
  readonly crashed: number
  readonly cancelled: number
}

function isRunNumber(value: unknown): boolean {
  return isWhole(value) && (value as number) < MOST_RUNS
}

const RUN: Columns<RunColumns> = {
  run: isRunNumber,
  run_id: isText,
  created_at: isTime,
  script: orNull(isText),
  seed: isNumber,
  sequence_dependent: isWhole,
  total: orNull(isWhole),
  epoch: isWhole,
  success: isWhole,
  failed: isWhole,
  timeout: isWhole,
  crashed: isWhole,
  cancelled: isWhole,
}

/** Reads a run by its number; without a number, the only run of its file. */
export function readRun(db: DatabaseSync, run: number | undefined): RunColumns {
  const rows =
    run === undefined
      ? prepared(db, 'SELECT * FROM _run LIMIT 2').all()
      : prepared(db, 'SELECT * FROM _run WHERE run = ? LIMIT 2').all(run)
  if (rows.length !== 1) throw new Error(rows.length === 0 ? 'it contains no run' : 'it contains more than one run')
  return checkedRun(rows[0])
}

export const checkedRun = (row: unknown): RunColumns => checkedRow(row, RUN, 'the run')

/** Refuses a resume whose runId, seed or sequenceDependent differs from that of the run. */
export function refuseOtherHeader(was: RunColumns, wanted: RunHeader, path: string): void {
  const differ = (what: string, before: unknown, now: unknown) => {
    if (before !== now)
      throw new ManyworldsError(
        'RESUME_MISMATCH',
        `run '${was.run_id}' (${path}) was started with ${what} ${String(before)}, but this call has ${String(now)}. Change it back, or start a new run with another runId`,
      )
  }
  differ('runId', was.run_id, wanted.runId)
  differ('seed', was.seed, wanted.seed)
  differ('sequenceDependent', was.sequence_dependent === 1, wanted.sequenceDependent)
}
