/**
 * Reads tasks from the rows of a table, a query or Parquet files, and writes responses back. Needs packages that `manyworlds`
 * does not install; when a function is called, its error says which are missing and how to install them.
 */
export { SparkError, type SparkErrorOptions } from './connect/spark-error.ts'
export type { SparkProgress } from './data/data-progress.ts'
export { type SparkRowsOptions, sparkRows } from './data/rows.ts'
export { type SparkSink, type SparkSinkOptions, type SparkWritten, sparkSink } from './data/sink.ts'
export type { SparkPlace, SparkRow, SparkSource } from './data/source.ts'
export { type SparkTasksOptions, sparkTasks } from './data/tasks.ts'
export type { SparkOptions } from './options.ts'
