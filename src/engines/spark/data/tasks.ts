import type { AnyAgent, InputOf } from '../../../agent.ts'
import type { TaskLike, TaskOptions } from '../../../task.ts'
import { mustPark } from '../../../worker/role.ts'
import { checkTasksOptions } from './option-checks.ts'
import { taskMaker } from './row-to-task.ts'
import { rowsOf, stoppable } from './rows.ts'
import type { SparkPlace, SparkRow, SparkSource } from './source.ts'

/** Which rows are tasks, and how. */
export interface SparkTasksOptions<A extends AnyAgent = AnyAgent, R extends object = SparkRow>
  extends SparkSource,
    SparkPlace {
  /** The task's id: a column, or made of the row. It must be the same whenever the row is read, so that a run can be resumed. */
  readonly id: string | ((row: R) => string)
  /** The task's input: a column; several, as an object; or made of the row. Default: the row. */
  readonly input?: string | readonly string[] | ((row: R) => InputOf<NoInfer<A>>)
  readonly agent: A
  /** What else there is to say about the task: `timeoutMs`, `metadata`, `groundTruth`, … */
  readonly task?: (row: R) => Omit<TaskOptions, 'id' | 'dependsOn'>
  /**
   * In how many parts, one query each, the rows are read, divided by the hash of their id: so Spark need not hold all of them
   * at once. Default: of `table` and `parquet` as many as it takes for 128 MB each; of `sql` one.
   */
  readonly slices?: number
}

/**
 * Tasks out of the rows of a DataFrame, read as they are wanted. Each time it is iterated, the query runs again.
 *
 * @example
 * const tasks = sparkTasks({ parquet: 'questions.parquet', id: 'id', input: 'question', agent: answer, inLocal: true })
 * for await (const response of Runners.streamTask(tasks, { engineName: 'spark', inLocal: true })) console.log(response.id)
 */
export function sparkTasks<A extends AnyAgent, R extends object = SparkRow>(
  options: SparkTasksOptions<A, R>,
): AsyncIterable<TaskLike<A>> {
  const plain = options as unknown as SparkTasksOptions
  // A worker that imports the script of a driver may have another environment, and does not run this.
  if (!mustPark()) checkTasksOptions(plain)
  return stoppable((stop) => readTasks(plain, stop) as AsyncGenerator<TaskLike<A>>)
}

async function* readTasks(options: SparkTasksOptions, stop: AbortSignal): AsyncGenerator<TaskLike> {
  const { id, slices } = options
  const { toTask, columns } = taskMaker(options)
  const wanted = { columns, idColumn: typeof id === 'string' ? id : undefined, slices }
  let row = 0
  for await (const values of rowsOf(options, wanted, stop)) yield toTask(values, ++row)
}
