import { say } from '../text/say.ts'
import { DataError, placeText } from './data-error.ts'
import { type RowSchema, schemaProblem } from './row-schema.ts'

/** The location of a row, for a mapping function. */
export interface RowPlace {
  /** The path, address or name of the source. */
  readonly file: string
  /** The line of the file on which the row starts, from 1. In a Parquet file: the number of the row. */
  readonly line: number
}

/** Maps a row, usually to a task. Return `undefined` to leave the row out. */
export type MapRow<Row, T> = (row: Row, at: RowPlace) => T | undefined

export interface DataSetOptions {
  /** What to do with a row that cannot be parsed or does not match `schema`. `'skip'` counts it in `skipped`. Default `'throw'`. */
  readonly onBadRow?: 'throw' | 'skip'
  /** Checks each row and may convert it: a schema of zod, valibot, arktype or another library that follows Standard Schema. */
  readonly schema?: RowSchema
  /** The name of the data in messages, if it is a stream. */
  readonly name?: string
}

/** A parsed row: its value, or what is wrong with it. */
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
  /** Nothing can be read after it, so it cannot be skipped. */
  readonly isLast?: boolean
}

/** How the rows of a data set are read. */
export interface RowSource {
  readonly file: string
  /** Whether it can be read only once. */
  readonly isStream: boolean
  /** Yields rows in batches: a promise for each row would take longer than reading it. */
  read(stop: AbortSignal): AsyncIterable<Iterable<ParsedRow>>
}

/**
 * The rows of a file, or the results of a mapping function. Nothing is opened before the first row is requested. Each iteration
 * reads the file again, a chunk at a time.
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

  /** The number of bad rows that the latest iteration has skipped so far. */
  get skipped(): number {
    return this.#skipped
  }

  /** Whether it is a stream, so that a second iteration is an error. */
  get isOnce(): boolean {
    return this.#source.isStream
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    const stop = new AbortController()
    const items = this.#iterate(stop.signal)
    return {
      next: () => items.next(),
      // A consumer that stops early must not wait for a silent server.
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
      // An error in the function, not in the row: it ends the reading, whatever `onBadRow` is.
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
  const cure = isLast ? 'fix the file' : "fix the row, or skip bad rows with onBadRow: 'skip'"
  return new DataError('DATA_INVALID', { file, line, column }, `${problem}; ${cure}`, { cause })
}

function sayWhatWasSkipped(file: string, skipped: number, { line, column, problem }: BadRow): void {
  const rows = skipped === 1 ? '1 bad row' : `${skipped} bad rows`
  say(`${file}: skipped ${rows}; the first is at ${placeText({ file, line, column })}: ${problem}`)
}
