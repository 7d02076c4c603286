import type { TaskResponse } from '../../../task.ts'
import { mustPark, park } from '../../../worker/role.ts'
import { checkSinkOptions } from './option-checks.ts'
import type { SparkPlace } from './source.ts'

/** Where answers go, and as what. One of `table` and `parquet` says where. */
export interface SparkSinkOptions<Answer = unknown> extends SparkPlace {
  /** The name of a table. */
  readonly table?: string
  /** A folder of Parquet files; where Spark is, so any address that it can write to. */
  readonly parquet?: string
  /** What if there is something already: `'error'` (default), `'overwrite'` it, or `'append'` to it. */
  readonly mode?: 'error' | 'overwrite' | 'append'
  /**
   * The row of a response; undefined: it has none. Default: id, agent, success, status, answer, error_code, error_message,
   * attempts, queued_ms, run_ms, worker, input_tokens, output_tokens and cost_usd.
   */
  readonly row?: (response: TaskResponse<Answer>) => Readonly<Record<string, unknown>> | undefined
  /**
   * The columns and their types, as Spark writes them: `'id string, score double, tags array<string>'`. Default: by the first
   * batch of rows; numbers are doubles, and what is neither number nor text nor date is JSON.
   */
  readonly schema?: string
  /** Columns whose values become folders. */
  readonly partitionBy?: string | readonly string[]
  /** Rows that are written at once, as one file. Fewer, if they are large: about 8 MB. Default 10,000. */
  readonly batchRows?: number
}

/** Writes responses to Spark. */
export interface SparkSink<Answer = unknown> {
  /**
   * Writes them, batch by batch, as they come. Resolves when the last one is written. When a batch cannot be written, or the
   * responses end with an error, it rejects, and those that are written stay.
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
  // A worker that imports the script of a driver may have another environment, and does not run this.
  if (!mustPark()) checkSinkOptions(options as unknown as SparkSinkOptions)
  return {
    async write(responses) {
      if (mustPark()) return park('writing to a sink of Spark')
      const { writeResponses } = await import('./write-responses.ts')
      return writeResponses(options as unknown as SparkSinkOptions, responses)
    },
  }
}
