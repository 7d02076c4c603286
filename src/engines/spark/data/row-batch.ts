import { ManyworldsError } from '../../../errors.ts'
import type { TaskResponse } from '../../../task.ts'
import type { Columns, KnownColumns } from './columns.ts'
import { responseRow } from './response-row.ts'
import { flatRowJson, rowJson } from './row-json.ts'
import type { SparkSinkOptions } from './sink.ts'
import { isPromise, kindInWords } from './words.ts'

const BATCH_ROWS = 10_000
const BATCH_CHARS = 8 * 1024 * 1024

/** Rows that are collected for the next batch. */
export class RowBatch {
  readonly #row: NonNullable<SparkSinkOptions['row']>
  readonly #most: number
  readonly #columns: Columns
  /** Of the default row, those that the schema does not name are left out. */
  readonly #picked: ReadonlySet<string> | undefined
  readonly #toJson: typeof rowJson
  #rows: string[] = []
  #chars = 0

  constructor({ row, schema, batchRows = BATCH_ROWS }: SparkSinkOptions, columns: Columns) {
    this.#row = row ?? responseRow
    this.#most = batchRows
    this.#columns = columns
    this.#picked = row === undefined && schema !== undefined ? (columns as KnownColumns).names : undefined
    // Only a user's schema has columns with an inner life.
    this.#toJson = schema === undefined ? flatRowJson : rowJson
  }

  get size(): number {
    return this.#rows.length
  }

  get schema(): string {
    return this.#columns.schema
  }

  /** True: the batch is full. */
  add(response: TaskResponse): boolean {
    if (!isResponse(response)) throw new ManyworldsError('CONFIG_INVALID', `sparkSink: ${notAResponse(response)}`)
    const text = this.#textOf(response)
    if (text === undefined) return false
    this.#rows.push(text)
    this.#chars += text.length
    return this.#rows.length >= this.#most || this.#chars >= BATCH_CHARS
  }

  take(): string[] {
    const rows = this.#rows
    this.#rows = []
    this.#chars = 0
    return rows
  }

  #textOf(response: TaskResponse): string | undefined {
    try {
      const fields = this.#fieldsOf(response)
      if (fields === undefined) return undefined
      if (this.#picked === undefined) this.#columns.see(fields)
      else for (const name in fields) if (!this.#picked.has(name)) delete fields[name]
      return this.#toJson(fields)
    } catch (cause) {
      const code = ManyworldsError.is(cause) ? cause.code : 'CONFIG_INVALID'
      throw new ManyworldsError(code, `sparkSink: response '${response.id}' cannot be made a row: ${wordsOf(cause)}`, {
        cause,
      })
    }
  }

  #fieldsOf(response: TaskResponse): Record<string, unknown> | undefined {
    let row: unknown
    try {
      row = this.#row(response)
    } catch (cause) {
      throw new ManyworldsError('CONFIG_INVALID', `\`row\` threw: ${wordsOf(cause)}`, { cause })
    }
    if (row === undefined) return undefined
    if (isPromise(row)) {
      // Nobody waits for it; what it may end with is not to end the process.
      row.then(undefined, () => {})
      throw wrongRow('must return the row, not a promise of it: do what takes time before, in the agent or in a stream')
    }
    if (typeof row !== 'object' || row === null || Array.isArray(row))
      throw wrongRow(`must give an object, or undefined, it gave ${kindInWords(row)}`)
    if (Object.keys(row).length === 0)
      throw wrongRow('gave an object without properties; a response that is to have no row is undefined')
    return row as Record<string, unknown>
  }
}

const wordsOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))
const wrongRow = (what: string) => new ManyworldsError('CONFIG_INVALID', `\`row\` ${what}`)

/** Tasks, pairs of a map and the like have come here. */
function isResponse(it: Partial<TaskResponse> | undefined | null): boolean {
  const { id, status, timing, usage } = it ?? {}
  return typeof id === 'string' && typeof status === 'string' && isObject(timing) && isObject(usage)
}

function notAResponse(it: unknown): string {
  const keys = isObject(it) && !Array.isArray(it) ? Object.keys(it) : undefined
  const what = keys === undefined ? kindInWords(it) : keys[0] ? `an object with ${keys.join(', ')}` : 'an empty object'
  return `this is no response: ${what}; write() takes responses, as runTask or streamTask give them`
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
