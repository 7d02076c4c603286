import type { AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import { streamTask } from '../runners/runners.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { type RolloutTask, TaskNotes } from './task-notes.ts'
import { TrajectoryStream } from './trajectory-stream.ts'

/** How tasks are run: everything that `Runners` takes, and the agent of tasks that name none. */
export interface ExecutorConfig extends RunConfig {
  readonly agent?: AnyAgent
}

type Tasks = Iterable<RolloutTask> | AsyncIterable<RolloutTask>

/** Attempts of a rollout that fails: it is tried once more, with the same seed. */
const ATTEMPTS = 2

/**
 * Collects experience: runs tasks on any engine, and gives their trajectories as they are done.
 *
 * | seed (Python) | here |
 * |---|---|
 * | `distribute_tasks(tasks)` | `distributeTasks(tasks, { rollouts })` |
 * | `execute_single_task(task, max_steps, timeout)` | the agent: `stepAgent({ maxSteps, timeoutMs })` is the loop of one episode, in a worker |
 * | `execute_action(action, task)` | `step` of its environment, or its tools: what goes wrong there is an observation |
 *
 * A rollout that fails is tried once more. Random numbers depend on the run's seed, the task and the rollout, not on the attempt, so the second attempt has the
 * chances of the first. (`maxAttempts` and `retryIf`, of the run or a task, replace this rule; `RetryableError` and `FatalError` overrule it.) If it fails
 * again, its trajectory comes with `ending.kind: 'failed'` and without a reward: `ExperienceBuffer` has a policy for such.
 *
 * @example
 * const executor = new ParallelTaskExecutor({ engineName: 'ray', agent: clerk })
 * for await (const trajectory of executor.distributeTasks([{ input }], { rollouts: 8, seed: 7 })) buffer.addTrajectory(trajectory)
 */
export class ParallelTaskExecutor {
  readonly #config: ExecutorConfig

  constructor(config: ExecutorConfig = {}) {
    this.#config = config
  }

  /**
   * Runs tasks, each `rollouts` times, and gives their trajectories in the order in which they are done; `compareRollouts` puts them in one that does not
   * depend on time. Nothing starts before the first one is asked for. If nobody takes them, the run waits. Leaving the loop cancels the rest, and goes on when the run has
   * ended. `config` is that of the executor where it says nothing else.
   */
  distributeTasks(tasks: Tasks, config: ExecutorConfig = {}): TrajectoryStream {
    return distribute(tasks, { ...this.#config, ...config }, streamTask)
  }
}

type Stream = (tasks: Iterable<TaskLike>, config: RunConfig) => AsyncIterableIterator<TaskResponse, undefined>

/** `stream`: what runs the tasks. A training has runs that are part of it. */
export function distribute(tasks: Tasks, { agent, ...run }: ExecutorConfig, stream: Stream): TrajectoryStream {
  const notes = new TaskNotes(run.rollouts, Array.isArray(tasks) && run.limit === undefined ? tasks : undefined)
  const retry = run.maxAttempts === undefined && run.retryIf === undefined ? { retryIf: once } : {}
  const ready = readyTasks(tasks, (task, index) => {
    if (typeof task !== 'object' || task === null) return task
    notes.add(task, index)
    return withAgent(task, agent, index)
  })
  const responses = stream(ready as Iterable<TaskLike>, { ...run, ...retry })
  return new TrajectoryStream(responses, (trajectory) => notes.complete(trajectory))
}

const once = (_: unknown, { attempt }: { readonly attempt: number }): boolean => attempt < ATTEMPTS

/** An array stays one: only in an array can tasks depend on each other. */
function readyTasks(
  tasks: Tasks,
  ready: (task: RolloutTask, index: number) => unknown,
): Iterable<unknown> | AsyncIterable<unknown> {
  if (Array.isArray(tasks)) return tasks.map(ready)
  // `Runners` says what is wrong with all else.
  if (typeof tasks !== 'object' || tasks === null) return tasks
  if (Symbol.asyncIterator in tasks) return mapLater(tasks, ready)
  return Symbol.iterator in tasks ? mapNow(tasks, ready) : tasks
}

function* mapNow<T>(tasks: Iterable<T>, ready: (task: T, index: number) => unknown): Generator<unknown> {
  let index = 0
  for (const task of tasks) yield ready(task, index++)
}

async function* mapLater<T>(tasks: AsyncIterable<T>, ready: (task: T, index: number) => unknown) {
  let index = 0
  for await (const task of tasks) yield ready(task, index++)
}

function withAgent(task: RolloutTask, agent: AnyAgent | undefined, index: number): unknown {
  if (task.agent !== undefined) return task
  if (agent === undefined)
    throw new ManyworldsError(
      'TASK_INVALID',
      `task '${task.id ?? `#${index + 1}`}' has no agent; give it one, or \`agent\` to the ParallelTaskExecutor for all`,
    )
  return { ...task, agent }
}
