import { ManyworldsError } from '../../../errors.ts'
import type { TaskResponse } from '../../../task.ts'
import type { Columns } from './columns.ts'
import { type HeldRow, heldRow } from './held-row.ts'
import type { Budget } from './json-text.ts'
import { inColumn } from './misfit.ts'
import { responseRow } from './response-row.ts'
import type { SparkSinkOptions } from './sink.ts'
import { isPromise, kindInWords } from './words.ts'

const BATCH_ROWS = 10_000
const BATCH_CHARS = 8 * 1024 * 1024
/** A batch is one message, and a Connect server accepts messages up to 128 MB (`spark.connect.grpc.maxInboundMessageSize`). */
const ROW_BYTES = 96 * 1024 * 1024
/** The most values in one row. Each takes at least one character, so that a row with more of them is too large anyway. */
const ROW_VALUES = 20_000_000

type Fields = Readonly<Record<string, unknown>>

/** Rows that are collected for the next batch, as JSON. */
export class RowBatch {
  readonly #row: NonNullable<SparkSinkOptions['row']>
  readonly #most: number
  readonly #columns: Columns
  /** Leaves out columns that the schema does not have. Only for the default row. */
  readonly #picks: boolean
  #rows: string[] = []
  /** The rows of the first batch, until it is full and the types are known. */
  #held: HeldRow[] = []
  #chars = 0

  constructor({ row, schema, batchRows = BATCH_ROWS }: SparkSinkOptions, columns: Columns) {
    this.#row = row ?? responseRow
    this.#most = batchRows
    this.#columns = columns
    this.#picks = row === undefined && schema !== undefined
  }

  get size(): number {
    return this.#rows.length + this.#held.length
  }

  get schema(): string {
    return this.#columns.schema
  }

  /** Returns true when the batch is full. */
  add(response: TaskResponse): boolean {
    if (!isResponse(response)) throw new ManyworldsError('CONFIG_INVALID', `sparkSink: ${notAResponse(response)}`)
    explained(response.id, () => {
      const fields = this.#fieldsOf(response)
      if (fields === undefined) return
      if (!this.#picks) this.#columns.see(fields)
      if (this.#columns.decided) this.#push(fields)
      else this.#hold(response.id, fields)
    })
    return this.size >= this.#most || this.#chars >= BATCH_CHARS
  }

  take(): string[] {
    for (const { id, fields } of this.#held) explained(id, () => this.#push(fields))
    const rows = this.#rows
    this.#rows = []
    this.#held = []
    this.#chars = 0
    return rows
  }

  #hold(id: string, fields: Fields): void {
    const row = heldRow(id, fields, { values: ROW_VALUES })
    this.#held.push(row)
    this.#chars += row.chars
  }

  #push(fields: Fields): void {
    const text = this.#textOf(fields)
    refuseLarge(text)
    this.#rows.push(text)
    this.#chars += text.length
  }

  #textOf(fields: Fields): string {
    const fits = this.#columns.fits()
    const budget: Budget = { values: ROW_VALUES }
    const made: string[] = []
    for (const column in fields) {
      const fit = fits.get(column)
      if (fit === undefined || fields[column] === undefined) continue
      made.push(`${JSON.stringify(column)}:${inColumn(column, () => fit(fields[column], budget))}`)
    }
    return `{${made.join(',')}}`
  }

  #fieldsOf(response: TaskResponse): Fields | undefined {
    let row: unknown
    try {
      row = this.#row(response)
    } catch (cause) {
      throw new ManyworldsError('CONFIG_INVALID', `\`row\` threw: ${wordsOf(cause)}`, { cause })
    }
    if (row === undefined) return undefined
    if (isPromise(row)) {
      // Nothing awaits this promise, and an unhandled rejection would end the process.
      row.then(undefined, () => {})
      throw wrongRow('must return the row, not a promise; do async work earlier, in the agent or in a stream')
    }
    if (typeof row !== 'object' || row === null || Array.isArray(row))
      throw wrongRow(`must return an object or undefined; it returned ${kindInWords(row)}`)
    if (Object.keys(row).length === 0)
      throw wrongRow('returned an object without properties; to write no row for a response, return undefined')
    return row as Fields
  }
}

function explained(id: string, work: () => void): void {
  try {
    work()
  } catch (cause) {
    const code = ManyworldsError.is(cause) ? cause.code : 'CONFIG_INVALID'
    throw new ManyworldsError(code, `sparkSink: response '${id}' cannot be made a row: ${wordsOf(cause)}`, { cause })
  }
}

function refuseLarge(text: string): void {
  if (text.length <= ROW_BYTES / 3) return
  const bytes = Buffer.byteLength(text)
  if (bytes <= ROW_BYTES) return
  const mb = (count: number) => Math.ceil(count / 1024 / 1024)
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `it has ${mb(bytes)} MB as JSON, and one row may have at most ${mb(ROW_BYTES)} MB; write large values to separate files`,
  )
}

function wordsOf(cause: unknown): string {
  if (cause instanceof RangeError && /^Invalid string length/.test(cause.message))
    return 'it is longer than the longest string'
  return cause instanceof Error ? cause.message : String(cause)
}

const wrongRow = (what: string) => new ManyworldsError('CONFIG_INVALID', `\`row\` ${what}`)

/** Checked because tasks, or pairs of a map, were passed by mistake. */
function isResponse(it: Partial<TaskResponse> | undefined | null): boolean {
  const { id, status, timing, usage } = it ?? {}
  return typeof id === 'string' && typeof status === 'string' && isObject(timing) && isObject(usage)
}

function notAResponse(it: unknown): string {
  const keys = isObject(it) && !Array.isArray(it) ? Object.keys(it) : undefined
  const what = keys === undefined ? kindInWords(it) : keys[0] ? `an object with ${keys.join(', ')}` : 'an empty object'
  return `this is not a response: ${what}; write() takes responses, as returned by runTask or streamTask`
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
