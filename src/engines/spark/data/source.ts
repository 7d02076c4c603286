import type { SparkOptions } from '../options.ts'
import type { SparkProgress } from './data-progress.ts'

/** Where rows come from: one of `sql`, `table` and `parquet`. */
export interface SparkSource {
  /** A query. `ORDER BY` in it is the order of the rows. */
  readonly sql?: string
  /** Values for the `:names` in `sql`. */
  readonly args?: Readonly<Record<string, string | number | bigint | boolean | null>>
  /** The name of a table or view. */
  readonly table?: string
  /** Parquet files, or folders of them: paths on Spark's machines, or any address that Spark can read. */
  readonly parquet?: string | readonly string[]
}

/** Which Spark: the same keys, with the same values, as in the RunConfig of a run on it. */
export interface SparkPlace extends SparkProgress {
  /** The cluster. Default: the environment variable SPARK_REMOTE. */
  readonly spark?: SparkOptions
  /** Use a Spark on this machine. Runs, sources and sinks of this process with the same `spark` share one. */
  readonly inLocal?: boolean
  /** With `inLocal`: the number of workers that a newly started Spark has room for. Default: the machine's cores. */
  readonly workerNum?: number
}

/** A row of a DataFrame: a property for each column. docs/spark.md lists what Spark's types become. */
export type SparkRow = Record<string, unknown>
