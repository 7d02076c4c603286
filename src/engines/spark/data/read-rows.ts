import { ManyworldsError } from '../../../errors.ts'
import { counted } from '../../../text/quantities.ts'
import { decodeRows } from '../connect/arrow.ts'
import { type Relation, readParquet, readTable, sql } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'
import { DataProgress } from './data-progress.ts'
import { refuseAllButQueries } from './only-queries.ts'
import { inSession, openSpark } from './place.ts'
import { inUse } from './read-guard.ts'
import { oneSlice, quoted, type Slices, slicesOf } from './slices.ts'
import type { SparkPlace, SparkRow, SparkSource } from './source.ts'
import { Spool } from './spool.ts'
import { knownNames } from './words.ts'

/** The next slice is requested when less than this waits in the spool. */
const LOW_BYTES = 16 * 1024 * 1024
/** Longer queries are cut in a line of progress. */
const MAX_QUERY_CHARS = 60
/** Otherwise Spark replaces `${…}` in a query by an empty text. */
const SETTINGS = { 'spark.sql.variable.substitute': 'false' }

/** How to read the rows of a source. */
export interface Wanted {
  /** The columns to read. Default: all. */
  readonly columns: readonly string[] | undefined
  /** The column that identifies a row, if there is one. */
  readonly idColumn: string | undefined
  /** The number of queries that read the rows. Default: as many as their size requires. */
  readonly slices: number | undefined
}

/** Yields the rows on demand, until `stop` is aborted. */
export async function* readRows(
  source: SparkSource,
  wanted: Wanted,
  place: SparkPlace,
  stop: AbortSignal,
): AsyncGenerator<SparkRow> {
  if (stop.aborted) return
  const spool = new Spool()
  const leave = new AbortController()
  const onStop = () => {
    leave.abort()
    void spool.close()
  }
  stop.addEventListener('abort', onStop)
  const done = inUse(source, place)
  let rows = 0
  const state: Filling = { doing: 'waiting for Spark' }
  const progress = new DataProgress(place, `reading ${nameOf(source)}`, () =>
    rows === 0 ? state.doing : `${counted(rows, 'row')}, ${state.doing}`,
  )
  const filling = fill(spool, place, leave.signal, state, (session) => prepare(session, source, wanted))
  try {
    const next = () => progress.during(spool.take())
    for (let batch = await next(); batch !== undefined; batch = await next())
      for (const row of decodeRows(batch)) {
        rows++
        yield row
      }
    progress.end(counted(rows, 'row'))
  } finally {
    leave.abort()
    stop.removeEventListener('abort', onStop)
    await filling
    await spool.close()
    done()
  }
}

/** What `fill` is doing, for the line of progress. */
interface Filling {
  doing: string
}

const nameOf = ({ table, parquet, sql: query = '' }: SparkSource): string => {
  if (table !== undefined) return `table '${table}'`
  if (parquet !== undefined) return `'${typeof parquet === 'string' ? parquet : parquet.join("', '")}'`
  return `the query '${query.length > MAX_QUERY_CHARS ? `${query.slice(0, MAX_QUERY_CHARS)}…` : query}'`
}

/** Reads one slice after the other into the spool. Never rejects: errors reach the reader of the spool. */
async function fill(
  spool: Spool,
  place: SparkPlace,
  signal: AbortSignal,
  state: Filling,
  slicesIn: (session: ConnectSession) => Promise<Slices>,
): Promise<void> {
  try {
    const server = await openSpark(place)
    try {
      signal.throwIfAborted()
      state.doing = 'asking Spark for columns and size'
      const slices = await inSession(server, SETTINGS, slicesIn)
      for (const [index, { query, rows }] of slices.parts.entries()) {
        await spool.drainedTo(LOW_BYTES)
        signal.throwIfAborted()
        state.doing = `query ${index + 1} of ${slices.parts.length}`
        let read = 0
        const onBatch = (size: number) => {
          read += size
        }
        await inSession(server, SETTINGS, async (session) => {
          for await (const batch of session.execute(query, { signal, onBatch })) await spool.add(batch)
        })
        checkCount(read, rows, state.doing)
      }
      spool.end()
    } finally {
      await server.release(false)
    }
  } catch (error) {
    if (!signal.aborted) spool.fail(explained(error))
  }
}

/** Checks what can be known before the first row. */
async function prepare(session: ConnectSession, source: SparkSource, wanted: Wanted): Promise<Slices> {
  const { columns, idColumn, slices } = wanted
  if (source.sql !== undefined) await refuseAllButQueries(session, source.sql, source.args ?? {})
  const all = relationOf(source)
  checkColumns(wanted, await session.columns(all))
  const rows =
    columns === undefined ? all : sql(`SELECT ${columns.map(quoted).join(', ')} FROM {source}`, { source: all })
  // A query may give other rows each time (LIMIT, rand): in slices, some would be read twice and others never.
  const parts = slices ?? (source.sql === undefined ? undefined : 1)
  if (idColumn === undefined || parts === 1) return oneSlice(rows)
  return slicesOf(session, rows, idColumn, parts)
}

function relationOf({ sql: query, args = {}, table, parquet }: SparkSource): Relation {
  if (query !== undefined) return sql(query, {}, args)
  return table === undefined ? readParquet(parquet!) : readTable(table)
}

function checkColumns({ columns, idColumn }: Wanted, there: readonly string[]): void {
  const list = there.map((name) => `'${name}'`).join(', ')
  for (const name of columns ?? (idColumn === undefined ? [] : [idColumn]))
    if (!there.includes(name))
      throw wrong(`there is no column '${name}'${knownNames(name, there, list === '' ? 'none' : list)}`)
  const twice = there.find((name, index) => there.indexOf(name) !== index && (columns?.includes(name) ?? true))
  if (twice !== undefined)
    throw wrong(`two columns are called '${twice}': give one of them another name, with AS in \`sql\``)
}

function checkCount(read: number, counted: number | undefined, what: string): void {
  if (counted === undefined || read === counted) return
  throw new ManyworldsError(
    'SOURCE_FAILED',
    `${what} gave ${read} rows, but there were ${counted} when they were counted: the source has changed in between, or gives other rows each time. Read it in one query (slices: 1), or from a copy`,
  )
}

const TOO_LARGE = /spark\.driver\.maxResultSize/

function explained(error: unknown): unknown {
  if (!(error instanceof Error) || !TOO_LARGE.test(error.message)) return error
  return new ManyworldsError(
    'SPARK_FAILED',
    `the rows are more than Spark gives as the result of one query. Read them in parts, with \`slices\` (and \`id\` as the name of a column), if the query gives the same rows each time; or write them to a table first. Spark says: ${error.message}`,
    { cause: error },
  )
}

const wrong = (what: string) => new ManyworldsError('CONFIG_INVALID', what)
