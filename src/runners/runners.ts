import type { AnswerOf, AnyAgent, Context } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import type { OneOf, TaskFor, TaskIterable, TaskLike, TaskResponse, TasksFor } from '../task.ts'
import { currentTask, mustPark, park, parkNow } from '../worker/role.ts'
import { loadDriver, requireDriver } from './load-driver.ts'
import { ResponseStream } from './response-stream.ts'
import type { TasksInput } from './source-of.ts'

/**
 * Runs one task. A task that fails is a response with an `error`, not an exception.
 *
 * @example
 * const response = await Runners.runTask(explain.task('tides'))
 * console.log(response.success ? response.answer : response.error.message)
 */
export function runTask<A extends AnyAgent>(task: TaskFor<A>, runConf?: RunConfig): Promise<TaskResponse<AnswerOf<A>>>
/**
 * Runs many tasks at once. The map has a response for every task, by its id, in the order in which the tasks were given.
 *
 * @example
 * const responses = await Runners.runTask([explain.task('tides'), explain.task('tariffs')], { workerNum: 4 })
 * for (const { id, status } of responses.values()) console.log(id, status)
 */
export function runTask<List extends readonly AnyAgent[]>(
  tasks: TasksFor<List>,
  runConf?: RunConfig,
): Promise<Map<string, TaskResponse<AnswerOf<List[number]>>>>
export function runTask<T extends { readonly agent: AnyAgent }>(
  tasks: TaskIterable<T>,
  runConf?: RunConfig,
): Promise<Map<string, TaskResponse<AnswerOf<T['agent']>>>>
/** A task that may be of one agent or another. */
export function runTask<T extends { readonly agent: AnyAgent }>(
  task: OneOf<T>,
  runConf?: RunConfig,
): Promise<TaskResponse<AnswerOf<T['agent']>>>
/** One or many. The last overload, because the compiler reports mistakes in terms of the last: at the wrong input itself. */
export function runTask<A extends AnyAgent, List extends readonly AnyAgent[]>(
  tasks: TaskFor<A> | TasksFor<List>,
  runConf?: RunConfig,
): Promise<TaskResponse<AnswerOf<A>> | Map<string, TaskResponse<AnswerOf<List[number]>>>>
export async function runTask(tasks: TaskLike | TasksInput, runConf?: RunConfig): Promise<unknown> {
  if (mustPark()) return park('Runners.runTask()')
  const single = isSingle(tasks)
  const input = single ? [tasks] : tasks
  const parent = currentTask()
  if (parent) return runInside(parent, tasks, runConf)
  if (single && runConf?.rollouts !== undefined)
    throw new ManyworldsError('CONFIG_INVALID', '`rollouts` gives several responses: give the task in an array, [task]')
  const { collect } = await loadDriver()
  const responses = await collect(input, runConf)
  return single ? responses.values().next().value : responses
}

/**
 * Runs tasks and yields their responses as they finish. Nothing starts before the first one is asked for; leaving the
 * loop cancels the rest.
 *
 * @example
 * for await (const response of Runners.streamTask(tasks)) console.log(response.id, response.status)
 */
export function streamTask<T extends { readonly agent: AnyAgent }>(
  tasks: TaskIterable<T>,
  runConf?: RunConfig,
): AsyncIterableIterator<TaskResponse<AnswerOf<T['agent']>>, undefined>
export function streamTask<List extends readonly AnyAgent[]>(
  tasks: TasksFor<List>,
  runConf?: RunConfig,
): AsyncIterableIterator<TaskResponse<AnswerOf<List[number]>>, undefined>
export function streamTask(tasks: TasksInput, runConf?: RunConfig): AsyncIterableIterator<unknown, undefined> {
  return new ResponseStream(async (sink) => {
    if (mustPark()) return park('Runners.streamTask()')
    const parent = currentTask()
    if (parent)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        'Runners.streamTask cannot be called inside a task; use ctx.runTask(tasks), which returns all responses together',
      )
    const { startRun } = await loadDriver()
    // A caller that takes responses one by one may have removed the run file before it reads the last steps.
    return startRun(isSingle(tasks) ? [tasks] : tasks, runConf, sink, true)
  })
}

/**
 * Runs an array of tasks and blocks this thread until they are done, as the Python name promises. The executor works in
 * a thread of its own. Prefer `runTask`.
 *
 * @example
 * const responses = Runners.syncRunTask([explain.task('tides')])
 */
export function syncRunTask<List extends readonly AnyAgent[]>(
  tasks: TasksFor<List>,
  runConf?: RunConfig,
): Map<string, TaskResponse<AnswerOf<List[number]>>> {
  if (mustPark()) parkNow('Runners.syncRunTask()')
  if (currentTask())
    throw new ManyworldsError(
      'SYNC_UNSUPPORTED',
      'syncRunTask would block the worker that its tasks need; use await ctx.runTask(tasks)',
    )
  return requireDriver().runBlocking(tasks as readonly TaskLike[], runConf) as Map<
    string,
    TaskResponse<AnswerOf<List[number]>>
  >
}

/**
 * AWorld's utility entry: the same as `Runners.runTask` with many tasks.
 *
 * @example
 * const responses = await execTasks([explain.task('tides'), explain.task('tariffs')])
 */
export function execTasks<T extends { readonly agent: AnyAgent }>(
  tasks: TaskIterable<T>,
  runConf?: RunConfig,
): Promise<Map<string, TaskResponse<AnswerOf<T['agent']>>>>
export function execTasks<List extends readonly AnyAgent[]>(
  tasks: TasksFor<List>,
  runConf?: RunConfig,
): Promise<Map<string, TaskResponse<AnswerOf<List[number]>>>>
export function execTasks(tasks: TasksInput, runConf?: RunConfig): Promise<unknown> {
  return runTask((isSingle(tasks) ? [tasks] : tasks) as never, runConf)
}

/**
 * Ends the workers that are kept warm between calls. A program that just ends need not call it.
 *
 * @example
 * process.once('SIGTERM', () => void Runners.shutdown())
 */
export async function shutdown(): Promise<void> {
  if (mustPark()) return park('Runners.shutdown()')
  await (await loadDriver()).shutdownPools()
}

function isSingle(tasks: unknown): tasks is TaskLike {
  return typeof tasks === 'object' && tasks !== null && !(Symbol.iterator in tasks) && !(Symbol.asyncIterator in tasks)
}

/** `Runners` inside a running task: its sub-tasks, on the same engine. */
async function runInside(
  parent: Context,
  tasks: TaskLike | TasksInput,
  runConf: RunConfig | undefined,
): Promise<unknown> {
  const { timeoutMs, maxAttempts, ...rest } = runConf ?? {}
  const other = Object.keys(rest)[0]
  if (other !== undefined)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `\`${other}\` cannot be set inside a task, because it belongs to the whole run; sub-tasks take only timeoutMs and maxAttempts`,
    )
  const own = {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  }
  const add = (task: TaskLike): TaskLike => ({ ...own, ...task })
  if (isSingle(tasks)) return parent.runTask(add(tasks))
  const list: TaskLike[] = []
  for await (const task of tasks) list.push(add(task))
  return parent.runTask(list)
}
