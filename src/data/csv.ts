import { CsvParser } from './csv-parser.ts'
import { DataSet, type DataSetOptions, type MapRow } from './data-set.ts'
import type { DataSource } from './open-bytes.ts'
import type { Rules } from './options.ts'
import type { RowOf, RowSchema } from './row-schema.ts'
import { checkTextOptions, type TextOptions, textRows } from './text-rows.ts'

/** A row: the text of each field, by the name of its column. */
export type CsvRow<Column extends string = string> = Readonly<Record<Column, string>>

export interface CsvOptions<Column extends string = string> extends DataSetOptions, TextOptions {
  /** The separator of fields: one ASCII character. Default `','`. */
  readonly delimiter?: string
  /** The column names, if the file has no header. The first line is then a normal row. */
  readonly columns?: readonly Column[]
}

const RULES: Rules = {
  delimiter: {
    test: (value) => typeof value === 'string' && /^[\t\x20-\x7e]$/.test(value) && !/["\w]/.test(value),
    must: "one character such as ',', ';', '|' or '\\t'",
  },
  columns: {
    test: (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((name) => typeof name === 'string') &&
      new Set(value).size === value.length,
    must: 'a list of different names',
  },
}

/**
 * Reads the rows of a CSV file (RFC 4180). All fields are texts. The first line has the column names, unless `columns` gives
 * them. Empty lines are skipped; a row with more or fewer fields than there are columns is a bad row. The file may be
 * compressed with gzip or zstd.
 *
 * @example
 * const tasks = fromCsv('questions.csv', (row: CsvRow<'id' | 'question'>) => answer.task(row.question, { id: row.id }))
 */
export function fromCsv<Schema extends RowSchema, T>(
  source: DataSource,
  map: MapRow<RowOf<Schema>, T>,
  options: CsvOptions & { readonly schema: Schema },
): DataSet<T>
export function fromCsv<const Column extends string, T>(
  source: DataSource,
  map: MapRow<CsvRow<Column>, T>,
  options: CsvOptions<Column> & { readonly columns: readonly Column[] },
): DataSet<T>
export function fromCsv<Row extends CsvRow, T>(
  source: DataSource,
  map: MapRow<Row, T>,
  options?: CsvOptions,
): DataSet<T>
export function fromCsv<Schema extends RowSchema>(
  source: DataSource,
  options: CsvOptions & { readonly schema: Schema },
): DataSet<RowOf<Schema>>
export function fromCsv<const Column extends string = string>(
  source: DataSource,
  options?: CsvOptions<Column>,
): DataSet<CsvRow<Column>>
export function fromCsv(
  source: DataSource,
  second?: MapRow<never, unknown> | CsvOptions,
  third?: CsvOptions,
): DataSet<unknown> {
  const { map, options } = checkTextOptions<CsvOptions>('fromCsv', source, [second, third], RULES)
  const { delimiter = ',', columns } = options
  const rows = textRows(source, options, (limits) => new CsvParser(limits, delimiter, columns))
  return new DataSet(rows, map, options)
}
