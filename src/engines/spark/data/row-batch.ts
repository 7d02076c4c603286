import { ManyworldsError } from '../../../errors.ts'
import type { TaskResponse } from '../../../task.ts'
import type { Columns, KnownColumns } from './columns.ts'
import { responseRow } from './response-row.ts'
import { flatRowJson, rowJson } from './row-json.ts'
import type { SparkSinkOptions } from './sink.ts'

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
      const row: unknown = this.#row(response)
      if (row === undefined) return undefined
      if (typeof row !== 'object' || row === null || Array.isArray(row))
        throw new ManyworldsError(
          'CONFIG_INVALID',
          `\`row\` must give an object, or undefined, it gave ${describe(row)}`,
        )
      const fields = row as Record<string, unknown>
      if (this.#picked === undefined) this.#columns.see(fields)
      else for (const name in fields) if (!this.#picked.has(name)) delete fields[name]
      return this.#toJson(fields)
    } catch (cause) {
      const code = ManyworldsError.is(cause) ? cause.code : 'CONFIG_INVALID'
      const words = cause instanceof Error ? cause.message : String(cause)
      throw new ManyworldsError(code, `sparkSink: response '${response?.id}' cannot be made a row: ${words}`, { cause })
    }
  }
}

const describe = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`)
