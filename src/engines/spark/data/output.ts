import { ManyworldsError } from '../../../errors.ts'
import { localRelation, type Relation, readParquet, readTable, sql, writeCommand } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'
import type { SparkField } from '../connect/types.ts'
import type { Server } from '../server.ts'
import type { DataProgress } from './data-progress.ts'
import { inSession } from './place.ts'
import type { SparkSinkOptions } from './sink.ts'
import { quoted } from './slices.ts'

/** Dates without a time zone are read and written as UTC. */
const SETTINGS = { 'spark.sql.session.timeZone': 'UTC', 'spark.sql.variable.substitute': 'false' }
/** No limit on text in JSON: the limit on the size of a row is reached first. */
const MOST_CHARS = String(2 ** 31 - 1)
/** Spark's error classes for a path or table that does not exist, and for a folder without Parquet files. */
const NOTHING_THERE = /^(PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND)/
const EMPTY = /^UNABLE_TO_INFER_SCHEMA/

/** The table or folder that is written to. */
export class Output {
  readonly name: string
  readonly #server: Server
  readonly #to: { readonly parquet: string } | { readonly table: string }
  readonly #mode: NonNullable<SparkSinkOptions['mode']>
  readonly #partitionBy: readonly string[]
  readonly #progress: DataProgress
  rows = 0
  batches = 0
  /** Rows of the batch that is being written. */
  pending = 0

  constructor(
    server: Server,
    { table, parquet, mode = 'error', partitionBy = [] }: SparkSinkOptions,
    progress: DataProgress,
  ) {
    this.#server = server
    this.#progress = progress
    this.#to = table === undefined ? { parquet: parquet! } : { table }
    this.name = table === undefined ? `'${parquet}'` : `the table '${table}'`
    this.#mode = mode
    this.#partitionBy = typeof partitionBy === 'string' ? [partitionBy] : partitionBy
  }

  /** Throws if it is already known that writing would fail. Returns the columns of the schema, if there is one. */
  async check(schema: string | undefined): Promise<readonly SparkField[] | undefined> {
    return inSession(this.#server, SETTINGS, async (session) => {
      const fields = schema === undefined ? undefined : await fieldsIn(session, schema)
      if (fields !== undefined) this.#checkPartitions(fields.map(({ name }) => name))
      if (this.#mode === 'error' && (await this.#columnsThere(session)) !== undefined)
        throw wrong(`${this.name} already exists; give mode: 'overwrite' or 'append', or write elsewhere`)
      return fields
    })
  }

  /** Writes rows, each of them as JSON. The first batch follows `mode`; later ones are appended. */
  async write(rows: readonly string[], schema: string): Promise<void> {
    const relation = typed(rows, schema)
    const first = this.batches === 0
    this.pending = rows.length
    try {
      const written = inSession(this.#server, SETTINGS, async (session) => {
        if (first) this.#checkPartitions(await session.columns(relation))
        if (first && this.#mode === 'append' && 'parquet' in this.#to) await this.#checkTypes(session, relation)
        const mode = first ? this.#mode : 'append'
        await session.run(writeCommand({ relation, to: this.#to, mode, partitionBy: this.#partitionBy }))
      })
      await this.#progress.during(written)
    } catch (error) {
      throw this.#failed(error)
    }
    this.pending = 0
    this.rows += rows.length
    this.batches++
  }

  async #columnsThere(session: ConnectSession): Promise<string[] | undefined> {
    try {
      return await session.columns(this.#there)
    } catch (error) {
      const { errorClass = '' } = error as { errorClass?: string }
      if (NOTHING_THERE.test(errorClass)) return undefined
      if (EMPTY.test(errorClass)) return []
      throw error
    }
  }

  get #there(): Relation {
    return 'table' in this.#to ? readTable(this.#to.table) : readParquet(this.#to.parquet)
  }

  #checkPartitions(names: readonly string[]): void {
    const missing = this.#partitionBy.find((name) => !names.includes(name))
    if (missing !== undefined)
      throw wrong(`\`partitionBy\` names '${missing}', which is not a column; columns: ${names.join(', ')}`)
  }

  /** Spark would add files with other types to the folder, and then fail to read it. */
  async #checkTypes(session: ConnectSession, relation: Relation): Promise<void> {
    const there = await this.#columnsThere(session)
    if (there === undefined) return
    // Partition columns are stored in names of folders, and their types are guessed by each reader.
    const common = (await session.columns(relation)).filter((n) => there.includes(n) && !this.#partitionBy.includes(n))
    const [before, now] = [await typesOf(session, this.#there, common), await typesOf(session, relation, common)]
    const other = common.find((_, index) => before[index] !== now[index])
    if (other === undefined) return
    const [was, is] = [before, now].map((types) => types[common.indexOf(other)])
    throw wrong(`column '${other}' of ${this.name} is ${was}, but the new rows have ${is}; give \`schema\``)
  }

  /** What was written so far, for an error. */
  get soFar(): string {
    return this.batches === 0
      ? 'nothing was written'
      : `${this.rows} rows in ${this.batches} batches were written before`
  }

  #failed(error: unknown): unknown {
    if (!(error instanceof Error)) return error
    const [reason] = (error as { causes?: readonly string[] }).causes ?? []
    const malformed = /^MALFORMED_RECORD/.test((error as { errorClass?: string }).errorClass ?? '')
    const words = malformed && reason !== undefined ? `a row does not fit the schema: ${reason}` : error.message
    const code = ManyworldsError.is(error) ? error.code : 'SPARK_FAILED'
    return new ManyworldsError(code, `responses could not be written to ${this.name} (${this.soFar}): ${words}`, {
      cause: error,
    })
  }
}

/** Rows with the types of the schema. FAILFAST: a value that does not fit is an error, not a null. */
function typed(rows: readonly string[], schema: string): Relation {
  return sql(
    `SELECT /*+ COALESCE(1) */ made.* FROM (
      SELECT from_json(row, :schema, map('mode', 'FAILFAST', 'maxStringLen', :most)) AS made FROM {rows}
    )`,
    { rows: localRelation({ row: rows }, { row: 'string' }) },
    { schema, most: MOST_CHARS },
  )
}

async function fieldsIn(session: ConnectSession, schema: string): Promise<SparkField[]> {
  try {
    return await session.fields(typed([], schema))
  } catch (cause) {
    const { message, errorClass = '' } = cause as Error & { errorClass?: string }
    if (/INVALID_JSON_MAP_KEY_TYPE/.test(errorClass + message))
      throw wrong(`the keys of a map must be text (map<string, …>); they are not in the schema '${schema}'`, cause)
    throw wrong(`Spark does not understand the schema '${schema}': ${message.split('\n', 1)[0]}`, cause)
  }
}

async function typesOf(session: ConnectSession, relation: Relation, names: readonly string[]): Promise<unknown[]> {
  if (names.length === 0) return []
  const types = names.map((name, index) => `typeof(first(${quoted(name)})) AS t${index}`).join(', ')
  for await (const row of session.rows(sql(`SELECT ${types} FROM (SELECT * FROM {it} LIMIT 0)`, { it: relation })))
    return Object.values(row)
  return []
}

const wrong = (what: string, cause?: unknown) => new ManyworldsError('CONFIG_INVALID', `sparkSink: ${what}`, { cause })
