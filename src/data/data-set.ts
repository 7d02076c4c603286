import { say } from '../text/say.ts'
import { DataError, placeText } from './data-error.ts'
import { type RowSchema, schemaProblem } from './row-schema.ts'

/** Where a row stands, for a mapping function. */
export interface RowPlace {
  /** The path, address or name of what is read. */
  readonly file: string
  /** The line of the file on which the row begins, from 1; in a Parquet file, the number of the row. */
  readonly line: number
}

/** Makes something of a row, a task as a rule. `undefined` leaves the row out. */
export type MapRow<Row, T> = (row: Row, at: RowPlace) => T | undefined

export interface DataSetOptions {
  /** What to do about a row that cannot be read or does not fit `schema`. `'skip'` counts it in `skipped`. Default `'throw'`. */
  readonly onBadRow?: 'throw' | 'skip'
  /** Checks each row, and may convert it: a schema of zod, valibot, arktype or another that follows Standard Schema. */
  readonly schema?: RowSchema
  /** What messages call the data, if it is a stream. */
  readonly name?: string
}

/** What a format makes of a row: its value, or what is wrong with it. */
export type ParsedRow = GoodRow | BadRow

interface GoodRow {
  readonly line: number
  readonly row: unknown
}

export interface BadRow {
  readonly line: number
  readonly column?: number | undefined
  readonly problem: string
  readonly cause?: unknown
  /** Nothing can be read behind it, so it cannot be skipped. */
  readonly isLast?: boolean
}

/** How the rows of a data set are read. */
export interface RowSource {
  readonly file: string
  /** It can be read only once. */
  readonly isStream: boolean
  /** Rows in batches, as they come: a promise for each row would take longer than reading it. */
  read(stop: AbortSignal): AsyncIterable<Iterable<ParsedRow>>
}

/**
 * The rows of a file, or what a mapping function makes of them. Nothing is opened before the first one is asked for, and
 * each iteration reads the file again, a piece at a time.
 */
export class DataSet<T> implements AsyncIterable<T> {
  readonly file: string
  readonly #source: RowSource
  readonly #map: MapRow<unknown, unknown> | undefined
  readonly #options: DataSetOptions
  #skipped = 0
  #isRead = false

  constructor(source: RowSource, map: MapRow<never, T> | undefined, options: DataSetOptions) {
    this.file = source.file
    this.#source = source
    this.#map = map as MapRow<unknown, unknown> | undefined
    this.#options = options
  }

  /** How many bad rows the latest iteration has skipped so far. */
  get skipped(): number {
    return this.#skipped
  }

  /** True: it is a stream, and a second iteration is an error. */
  get isOnce(): boolean {
    return this.#source.isStream
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    const stop = new AbortController()
    const items = this.#iterate(stop.signal)
    return {
      next: () => items.next(),
      // Whoever leaves does not wait for a server that says nothing.
      return: () => {
        stop.abort()
        return items.return(undefined)
      },
    }
  }

  async *#iterate(stop: AbortSignal): AsyncGenerator<T, undefined> {
    const { file } = this.#source
    const { schema, onBadRow } = this.#options
    if (this.#isRead && this.isOnce)
      throw new DataError('DATA_UNREADABLE', { file }, 'a stream can be read only once; give a path or an address')
    this.#isRead = true
    this.#skipped = 0
    let first: BadRow | undefined
    try {
      for await (const rows of this.#source.read(stop))
        for (const parsed of rows) {
          const checked = schema === undefined || 'problem' in parsed ? parsed : await fit(schema, parsed)
          if ('problem' in checked) {
            if (onBadRow !== 'skip' || checked.isLast) throw badRow(file, checked)
            this.#skipped++
            first ??= checked
            continue
          }
          const item = this.#mapped(checked.row, checked.line)
          if (item !== undefined) yield item as T
        }
    } finally {
      if (first) sayWhatWasSkipped(file, this.#skipped, first)
    }
    return undefined
  }

  #mapped(row: unknown, line: number): unknown {
    if (this.#map === undefined) return row
    const { file } = this.#source
    try {
      return this.#map(row, { file, line })
    } catch (cause) {
      // A mistake of the function, not of the row: it ends the reading, whatever `onBadRow` says.
      const message = cause instanceof Error ? cause.message : String(cause)
      throw new DataError('DATA_INVALID', { file, line }, `the mapping function threw: ${message}`, { cause })
    }
  }
}

async function fit(schema: RowSchema, { line, row }: GoodRow): Promise<ParsedRow> {
  const result = await schema['~standard'].validate(row)
  return result.issues ? { line, problem: schemaProblem(result.issues) } : { line, row: result.value }
}

function badRow(file: string, { line, column, problem, cause, isLast }: BadRow): DataError {
  const cure = isLast ? 'repair the file' : "repair the row, or skip such rows with onBadRow: 'skip'"
  return new DataError('DATA_INVALID', { file, line, column }, `${problem}; ${cure}`, { cause })
}

function sayWhatWasSkipped(file: string, skipped: number, { line, column, problem }: BadRow): void {
  const rows = skipped === 1 ? '1 bad row was' : `${skipped} bad rows were`
  say(`${file}: ${rows} skipped; the first is at ${placeText({ file, line, column })}: ${problem}`)
}
