import { DataSet, type DataSetOptions, type MapRow } from './data-set.ts'
import { JsonlParser } from './jsonl-parser.ts'
import type { DataSource } from './open-bytes.ts'
import type { RowOf, RowSchema } from './row-schema.ts'
import { checkTextOptions, type TextOptions, textRows } from './text-rows.ts'

export interface JsonlOptions extends DataSetOptions, TextOptions {}

/**
 * Reads the rows of a JSONL file: one JSON value per line. Empty lines are skipped. The file may be compressed with gzip or
 * zstd.
 *
 * @example
 * const tasks = fromJsonl('questions.jsonl', (row: { id: string; question: string }) => answer.task(row.question, { id: row.id }))
 * for await (const response of Runners.streamTask(tasks)) console.log(response.id, response.status)
 */
export function fromJsonl<Schema extends RowSchema, T>(
  source: DataSource,
  map: MapRow<RowOf<Schema>, T>,
  options: JsonlOptions & { readonly schema: Schema },
): DataSet<T>
export function fromJsonl<Row, T>(source: DataSource, map: MapRow<Row, T>, options?: JsonlOptions): DataSet<T>
export function fromJsonl<Schema extends RowSchema>(
  source: DataSource,
  options: JsonlOptions & { readonly schema: Schema },
): DataSet<RowOf<Schema>>
export function fromJsonl<Row = unknown>(source: DataSource, options?: JsonlOptions): DataSet<Row>
export function fromJsonl(
  source: DataSource,
  second?: MapRow<never, unknown> | JsonlOptions,
  third?: JsonlOptions,
): DataSet<unknown> {
  const { map, options } = checkTextOptions('fromJsonl', source, [second, third])
  return new DataSet(
    textRows(source, options, (limits) => new JsonlParser(limits)),
    map,
    options,
  )
}
