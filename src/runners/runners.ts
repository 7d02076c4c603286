import type { AnswerOf, AnyAgent, Context, InputOf } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import type { ResponseOf, TaskLike, TaskOptions, TaskResponse } from '../task.ts'
import { currentTask, mustPark, Parked, park } from '../worker/role.ts'
import { collect } from './collect.ts'
import { shutdownPools } from './pools.ts'
import { ResponseStream } from './response-stream.ts'
import { startRun, type TasksInput } from './start-run.ts'
import { runBlocking } from './sync.ts'

/**
 * A task whose input fits its own agent. Written so that TypeScript infers the agent of each element from its `agent`
 * property, and then checks the `input` beside it: mixed agents in one array are each checked on their own.
 */
export type CheckedTask<A> = A extends AnyAgent
  ? TaskOptions & { readonly agent: A; readonly input: InputOf<A> }
  : never

/** Runs one task. */
export function runTask<A extends AnyAgent>(
  task: CheckedTask<A>,
  runConf?: RunConfig,
): Promise<TaskResponse<AnswerOf<A>>>
/** Runs many; the map is in the order in which they were given. */
export function runTask<const T extends readonly TaskLike[]>(
  tasks: T & CheckAll<T>,
  runConf?: RunConfig,
): Promise<Map<string, ResponseOf<T[number]>>>
export function runTask<T extends TaskLike>(
  tasks: (Iterable<T> | AsyncIterable<T>) & CheckIterable<T>,
  runConf?: RunConfig,
): Promise<Map<string, ResponseOf<T>>>
export async function runTask(tasks: TaskLike | TasksInput, runConf?: RunConfig): Promise<unknown> {
  if (mustPark()) return park()
  const single = isSingle(tasks)
  const input = single ? [tasks] : tasks
  const parent = currentTask()
  if (parent) return runInside(parent, tasks, runConf)
  const responses = await collect(input, runConf)
  return single ? responses.values().next().value : responses
}

type CheckAll<T extends readonly unknown[]> = { readonly [K in keyof T]: Fits<T[K]> }
type CheckIterable<T> = T extends unknown ? Iterable<Fits<T>> | AsyncIterable<Fits<T>> : never
type Fits<T> = T extends { readonly agent: infer A } ? Omit<T, 'input'> & { readonly input: InputOf<A> } : never

/**
 * Runs tasks and yields their responses as they finish. Nothing starts before the first one is asked for; leaving the
 * loop cancels the rest.
 *
 * @example
 * for await (const response of Runners.streamTask(tasks)) console.log(response.id, response.status)
 */
export function streamTask<const T extends readonly TaskLike[]>(
  tasks: T & CheckAll<T>,
  runConf?: RunConfig,
): AsyncIterableIterator<ResponseOf<T[number]>, undefined>
export function streamTask<T extends TaskLike>(
  tasks: (Iterable<T> | AsyncIterable<T>) & CheckIterable<T>,
  runConf?: RunConfig,
): AsyncIterableIterator<ResponseOf<T>, undefined>
export function streamTask(tasks: TasksInput, runConf?: RunConfig): AsyncIterableIterator<unknown, undefined> {
  return new ResponseStream((sink) => {
    if (mustPark()) return park()
    const parent = currentTask()
    if (parent)
      return Promise.reject(
        new ManyworldsError(
          'CONFIG_INVALID',
          'inside a task, use ctx.runTask(tasks): its sub-tasks come back together',
        ),
      )
    return startRun(isSingle(tasks) ? [tasks] : tasks, runConf, sink)
  })
}

/**
 * Runs an array of tasks and blocks this thread until they are done, as the Python name promises. The executor works in
 * a thread of its own. Prefer `runTask`.
 */
export function syncRunTask<const T extends readonly TaskLike[]>(
  tasks: T & CheckAll<T>,
  runConf?: RunConfig,
): Map<string, ResponseOf<T[number]>> {
  if (mustPark()) {
    void park()
    throw new Parked('a worker does not run the script’s own runs')
  }
  if (currentTask())
    throw new ManyworldsError(
      'SYNC_UNSUPPORTED',
      'syncRunTask would block the worker that its tasks need; use await ctx.runTask(tasks)',
    )
  return runBlocking(tasks, runConf) as Map<string, ResponseOf<T[number]>>
}

/** AWorld's utility entry: the same as `runTask` with many. */
export function execTasks<const T extends readonly TaskLike[]>(
  tasks: T & CheckAll<T>,
  runConf?: RunConfig,
): Promise<Map<string, ResponseOf<T[number]>>>
export function execTasks<T extends TaskLike>(
  tasks: (Iterable<T> | AsyncIterable<T>) & CheckIterable<T>,
  runConf?: RunConfig,
): Promise<Map<string, ResponseOf<T>>>
export function execTasks(tasks: TasksInput, runConf?: RunConfig): Promise<unknown> {
  return runTask((isSingle(tasks) ? [tasks] : tasks) as never, runConf)
}

/** Ends the workers that are kept warm between calls. A program that just ends need not call it. */
export async function shutdown(): Promise<void> {
  if (mustPark()) return park()
  await shutdownPools()
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
      `inside a task, \`${other}\` is the run's own: sub-tasks can only be given timeoutMs and maxAttempts`,
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
