import type { AnyAgent, InputOf } from '../../../agent.ts'
import type { TaskLike, TaskOptions } from '../../../task.ts'
import { mustPark } from '../../../worker/role.ts'
import { checkTasksOptions } from './option-checks.ts'
import { taskMaker } from './row-to-task.ts'
import { rowsOf, stoppable } from './rows.ts'
import type { SparkPlace, SparkRow, SparkSource } from './source.ts'

/** Which rows to read, and how a row becomes a task. */
export interface SparkTasksOptions<A extends AnyAgent = AnyAgent, R extends object = SparkRow>
  extends SparkSource,
    SparkPlace {
  /** The task's id: a column, or a function of the row. It must be the same each time the row is read, so that a run can be resumed. */
  readonly id: string | ((row: R) => string)
  /** The task's input: a column; several columns, which become an object; or a function of the row. Default: the whole row. */
  readonly input?: string | readonly string[] | ((row: R) => InputOf<NoInfer<A>>)
  readonly agent: A
  /** Other options of the task: `timeoutMs`, `metadata`, `groundTruth`, … */
  readonly task?: (row: R) => Omit<TaskOptions, 'id' | 'dependsOn'>
  /**
   * The number of queries that read the rows. Each reads the rows with some hashes of the id, so that Spark does not have to hold
   * all rows at once. Default for `table` and `parquet`: so many that each reads about 128 MB; for `sql`: 1.
   */
  readonly slices?: number
}

/**
 * Tasks made of the rows of a DataFrame, read as the run needs them. Each iteration runs the query again.
 *
 * @example
 * const tasks = sparkTasks({ parquet: 'questions.parquet', id: 'id', input: 'question', agent: answer, inLocal: true })
 * for await (const response of Runners.streamTask(tasks, { engineName: 'spark', inLocal: true })) console.log(response.id)
 */
export function sparkTasks<A extends AnyAgent, R extends object = SparkRow>(
  options: SparkTasksOptions<A, R>,
): AsyncIterable<TaskLike<A>> {
  const plain = options as unknown as SparkTasksOptions
  // A worker that imports the driver's script does not read rows, and may lack what these checks need.
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
