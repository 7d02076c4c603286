/** Data sets from files: `manyworlds/data`. */
export { type CsvOptions, type CsvRow, fromCsv } from './csv.ts'
export { DataError } from './data-error.ts'
export type { DataSet, DataSetOptions, MapRow, RowPlace } from './data-set.ts'
export { fromJsonl, type JsonlOptions } from './jsonl.ts'
export type { DataSource } from './open-bytes.ts'
export { fromParquet, type ParquetOptions, type ParquetRow } from './parquet.ts'
export type { RowSchema } from './row-schema.ts'
