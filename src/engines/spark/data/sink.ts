import type { TaskResponse } from '../../../task.ts'
import { mustPark, park } from '../../../worker/role.ts'
import { checkSinkOptions } from './option-checks.ts'
import type { SparkPlace } from './source.ts'

/** Where responses are written, and as which rows. Give either `table` or `parquet`. */
export interface SparkSinkOptions<Answer = unknown> extends SparkPlace {
  /** The name of a table. */
  readonly table?: string
  /** A folder for Parquet files: a path on Spark's machines, or any address that Spark can write to. */
  readonly parquet?: string
  /** If the table or folder exists: `'error'` (default), `'overwrite'` it, or `'append'` to it. */
  readonly mode?: 'error' | 'overwrite' | 'append'
  /**
   * Makes the row of a response; return undefined to write none. Default columns: id, agent, success, status, answer, error_code, error_message,
   * attempts, queued_ms, run_ms, worker, input_tokens, output_tokens and cost_usd.
   */
  readonly row?: (response: TaskResponse<Answer>) => Readonly<Record<string, unknown>> | undefined
  /**
   * The columns and their types, in Spark's notation: `'id string, score double, tags array<string>'`. Default: guessed from the
   * first batch of rows. Then numbers are doubles, and arrays and objects become JSON text.
   */
  readonly schema?: string
  /** Columns to partition by: each of their values gets its own folder. */
  readonly partitionBy?: string | readonly string[]
  /** The most rows per batch, which becomes one file. A batch also ends at about 8 MB. Default 10,000. */
  readonly batchRows?: number
}

/** Writes responses to Spark. */
export interface SparkSink<Answer = unknown> {
  /**
   * Writes responses in batches as they arrive, and resolves when the last one is written. If a batch cannot be written, or the
   * responses end with an error, it rejects; batches that were written stay.
   */
  write(
    responses:
      | AsyncIterable<TaskResponse<Answer>>
      | Iterable<TaskResponse<Answer>>
      | ReadonlyMap<string, TaskResponse<Answer>>,
  ): Promise<SparkWritten>
}

/** How much was written. */
export interface SparkWritten {
  readonly rows: number
  readonly batches: number
}

/**
 * Writes responses to a table or to Parquet files, while tasks are still running.
 *
 * @example
 * const responses = Runners.streamTask(tasks, { engineName: 'spark', inLocal: true })
 * const { rows } = await sparkSink({ parquet: 'answers.parquet', mode: 'overwrite', inLocal: true }).write(responses)
 */
export function sparkSink<Answer = unknown>(options: SparkSinkOptions<Answer>): SparkSink<Answer> {
  // A worker that imports the driver's script does not write, and may lack what these checks need.
  if (!mustPark()) checkSinkOptions(options as unknown as SparkSinkOptions)
  return {
    async write(responses) {
      if (mustPark()) return park('writing to a sink of Spark')
      const { writeResponses } = await import('./write-responses.ts')
      return writeResponses(options as unknown as SparkSinkOptions, responses)
    },
  }
}
