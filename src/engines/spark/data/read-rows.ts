import { ManyworldsError } from '../../../errors.ts'
import { counted } from '../../../text/quantities.ts'
import { decodeRows } from '../connect/arrow.ts'
import { type Relation, readParquet, readTable, sql } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'
import { DataProgress } from './data-progress.ts'
import { refuseAllButQueries } from './only-queries.ts'
import { inSession, openSpark } from './place.ts'
import { inUse } from './read-guard.ts'
import { quoted, type Slices, slicesOf } from './slices.ts'
import type { SparkPlace, SparkRow, SparkSource } from './source.ts'
import { Spool } from './spool.ts'
import { knownNames } from './words.ts'

/** The next slice is asked for when so little waits. */
const LOW_BYTES = 16 * 1024 * 1024
/** Of a query in a line of progress. */
const MAX_QUERY_CHARS = 60
/** Spark would replace `${…}` in a query, by nothing. */
const SETTINGS = { 'spark.sql.variable.substitute': 'false' }

/** What is wanted of the rows of a source. */
export interface Wanted {
  /** Those that are needed; undefined: all. */
  readonly columns: readonly string[] | undefined
  /** The column that tells rows apart, if there is one. */
  readonly idColumn: string | undefined
  /** In how many parts; undefined: as their size asks for. */
  readonly slices: number | undefined
}

/** The rows, as they are asked for. `stop`: they are not, any more. */
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
    if (!stop.aborted) checkCount(rows, (await filling)?.rows)
    progress.end(counted(rows, 'row'))
  } finally {
    leave.abort()
    stop.removeEventListener('abort', onStop)
    await filling
    await spool.close()
    done()
  }
}

/** What is being done to bring rows here. */
interface Filling {
  doing: string
}

const nameOf = ({ table, parquet, sql: query = '' }: SparkSource): string => {
  if (table !== undefined) return `table '${table}'`
  if (parquet !== undefined) return `'${typeof parquet === 'string' ? parquet : parquet.join("', '")}'`
  return `the query '${query.length > MAX_QUERY_CHARS ? `${query.slice(0, MAX_QUERY_CHARS)}…` : query}'`
}

/** Brings the rows here, one slice after the other. Never rejects: what goes wrong is told to whoever takes from the spool. */
async function fill(
  spool: Spool,
  place: SparkPlace,
  signal: AbortSignal,
  state: Filling,
  slicesIn: (session: ConnectSession) => Promise<Slices>,
): Promise<Slices | undefined> {
  try {
    const server = await openSpark(place)
    try {
      signal.throwIfAborted()
      state.doing = 'asking Spark for columns and size'
      const slices = await inSession(server, SETTINGS, slicesIn)
      for (const [index, part] of slices.parts.entries()) {
        await spool.drainedTo(LOW_BYTES)
        signal.throwIfAborted()
        state.doing = `query ${index + 1} of ${slices.parts.length}`
        await inSession(server, SETTINGS, async (session) => {
          for await (const batch of session.execute(part, { signal })) await spool.add(batch)
        })
      }
      spool.end()
      return slices
    } finally {
      await server.release(false)
    }
  } catch (error) {
    if (!signal.aborted) spool.fail(explained(error))
    return undefined
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
  // The rows of a query may differ from one time to the next (LIMIT, rand), and be in no part of it then, or in two.
  const parts = slices ?? (source.sql === undefined ? undefined : 1)
  if (idColumn === undefined || parts === 1) return { parts: [rows], rows: undefined }
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

function checkCount(read: number, counted: number | undefined): void {
  if (counted === undefined || read === counted) return
  throw new ManyworldsError(
    'SOURCE_FAILED',
    `there were ${counted} rows when they were counted, and ${read} were read: the source has changed in between, or gives other rows each time. Read it in one query (slices: 1), or from a copy`,
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
