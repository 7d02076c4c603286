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
  /** Parquet files, or folders of them; where Spark is, so any address that it can read. */
  readonly parquet?: string | readonly string[]
}

/** Which Spark: the same keys, with the same values, as in the RunConfig of a run on it. */
export interface SparkPlace extends SparkProgress {
  /** The cluster. Default: the one that the variable SPARK_REMOTE names. */
  readonly spark?: SparkOptions
  /** A Spark on this machine. Whoever in this process says so, with the same `spark`, shares one. */
  readonly inLocal?: boolean
  /** With `inLocal`: for how many workers there is to be room, if Spark is started for this. Default: the machine's cores. */
  readonly workerNum?: number
}

/** A row of a DataFrame: a property for each column. See docs/spark.md for what Spark's types become. */
export type SparkRow = Record<string, unknown>
