import { setImmediate as nextTurn } from 'node:timers/promises'
import { mustPark, park } from '../../../worker/role.ts'
import { checkRowsOptions } from './option-checks.ts'
import type { Wanted } from './read-rows.ts'
import type { SparkPlace, SparkRow, SparkSource } from './source.ts'

/** Which rows to read, and on which Spark. */
export interface SparkRowsOptions extends SparkSource, SparkPlace {}

/**
 * The rows of a DataFrame, read as the loop needs them; for example, to look at what a run has written. Each iteration runs the
 * query again.
 *
 * @example
 * for await (const row of sparkRows({ sql: 'SELECT count(*) AS n FROM parquet.`answers.parquet`', inLocal: true })) console.log(row.n)
 */
export function sparkRows<R extends object = SparkRow>(options: SparkRowsOptions): AsyncIterable<R> {
  if (!mustPark()) checkRowsOptions(options)
  const all: Wanted = { columns: undefined, idColumn: undefined, slices: 1 }
  return stoppable((stop) => rowsOf(options, all, stop) as AsyncGenerator<unknown> as AsyncGenerator<R>)
}

/** Can be iterated several times. Leaving the loop aborts `stop` at once, even while the generator waits for something. */
export function stoppable<T>(start: (stop: AbortSignal) => AsyncGenerator<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const stop = new AbortController()
      const values = start(stop.signal)
      return {
        next: () => values.next(),
        return: () => {
          stop.abort()
          return values.return(undefined)
        },
      }
    },
  }
}

export async function* rowsOf(
  options: SparkSource & SparkPlace,
  wanted: Wanted,
  stop: AbortSignal,
): AsyncGenerator<SparkRow> {
  if (mustPark()) await park('reading rows of Spark')
  // An engine on the same local Spark starts in the turn in which its first task is requested. Let it go first: it decides Spark's size.
  if (options.inLocal) await nextTurn()
  const { readRows } = await import('./read-rows.ts')
  yield* readRows(options, wanted, options, stop)
}
