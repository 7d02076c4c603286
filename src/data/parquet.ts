import { fileURLToPath } from 'node:url'
import { DataSet, type DataSetOptions, type MapRow } from './data-set.ts'
import { isAddress } from './open-bytes.ts'
import { checkOptions, invalid, type Rules, shown } from './options.ts'
import type { RowOf, RowSchema } from './row-schema.ts'
import { DATA_SET_RULES } from './text-rows.ts'

/** A row of a Parquet file: one value per column. docs/data.md lists how Parquet types are converted. */
export type ParquetRow = Readonly<Record<string, unknown>>

export interface ParquetOptions extends DataSetOptions {
  /** Read only these columns; the others cost neither time nor memory. Default: all. */
  readonly columns?: readonly string[]
}

const RULES: Rules = {
  ...DATA_SET_RULES,
  columns: {
    test: (value) => Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string'),
    must: 'a list of names',
  },
}

/**
 * Reads the rows of a Parquet file, one row group at a time.
 *
 * @example
 * const tasks = fromParquet('questions.parquet', (row: { id: string; question: string }) => answer.task(row.question, { id: row.id }))
 */
export function fromParquet<Schema extends RowSchema, T>(
  path: string | URL,
  map: MapRow<RowOf<Schema>, T>,
  options: ParquetOptions & { readonly schema: Schema },
): DataSet<T>
export function fromParquet<Row extends object, T>(
  path: string | URL,
  map: MapRow<Row, T>,
  options?: ParquetOptions,
): DataSet<T>
export function fromParquet<Schema extends RowSchema>(
  path: string | URL,
  options: ParquetOptions & { readonly schema: Schema },
): DataSet<RowOf<Schema>>
export function fromParquet<Row extends object = ParquetRow>(path: string | URL, options?: ParquetOptions): DataSet<Row>
export function fromParquet(
  path: string | URL,
  second?: MapRow<never, unknown> | ParquetOptions,
  third?: ParquetOptions,
): DataSet<unknown> {
  const map = typeof second === 'function' ? second : undefined
  const options = (map === undefined ? ((second as ParquetOptions | undefined) ?? third) : third) ?? {}
  checkOptions('fromParquet', options, RULES)
  const file = pathOf(path)
  const { columns } = options
  const name = options.name ?? file
  return new DataSet(
    {
      file: name,
      isStream: false,
      async *read() {
        const { readParquet } = await import('./parquet-thread.ts')
        yield* readParquet({ path: file, file: name, columns })
      },
    },
    map,
    options,
  )
}

function pathOf(path: unknown): string {
  if (isAddress(path)) throw invalid('fromParquet reads only files, not addresses; download the file first')
  if (typeof path === 'string' && path !== '') return path
  if (path instanceof URL && path.protocol === 'file:') return fileURLToPath(path)
  throw invalid(`fromParquet: give the path of a file, not ${path === '' ? "''" : shown(path)}`)
}
