import type { AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import { streamTask } from '../runners/runners.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { type RolloutTask, type RolloutTasks, TaskNotes } from './task-notes.ts'
import { TrajectoryStream } from './trajectory-stream.ts'

/** How tasks are run: all options of `Runners`, and the default agent. */
export interface ExecutorConfig extends RunConfig {
  readonly agent?: AnyAgent
}

/** A failed rollout is retried once, with the same seed. */
const ATTEMPTS = 2

/**
 * Collects experience: runs tasks on any engine, and yields their trajectories as they finish.
 *
 * | AWorld (Python) | here |
 * |---|---|
 * | `distribute_tasks(tasks)` | `distributeTasks(tasks, { rollouts })` |
 * | `execute_single_task(task, max_steps, timeout)` | the agent: `stepAgent({ maxSteps, timeoutMs })` is the loop of one episode, in a worker |
 * | `execute_action(action, task)` | `step` of its environment, or its tools; errors become observations |
 *
 * A failed rollout is retried once. Random numbers depend on the run's seed, the task and the rollout, not on the attempt, so both attempts draw the same
 * numbers. (`maxAttempts` and `retryIf`, of the run or a task, replace this rule; `RetryableError` and `FatalError` override it.) If it fails again, its
 * trajectory has `ending.kind: 'failed'` and no reward: `ExperienceBuffer` has a policy for this.
 *
 * @example
 * const executor = new ParallelTaskExecutor({ engine: ray(), agent: clerk })
 * for await (const trajectory of executor.distributeTasks([{ input }], { rollouts: 8, seed: 7 })) buffer.addTrajectory(trajectory)
 */
export class ParallelTaskExecutor {
  readonly #config: ExecutorConfig

  constructor(config: ExecutorConfig = {}) {
    this.#config = config
  }

  /**
   * Runs tasks, each `rollouts` times, and yields their trajectories as they finish; sort with `compareRollouts` for an
   * order that does not depend on timing. Nothing starts before the first trajectory is requested. If trajectories are
   * not consumed, the run pauses. Leaving the loop cancels the rest and waits until the run has ended. `config`
   * overrides the executor's configuration.
   */
  distributeTasks(tasks: RolloutTasks, config: ExecutorConfig = {}): TrajectoryStream {
    return distribute(tasks, { ...this.#config, ...config }, streamTask)
  }
}

type Stream = (tasks: Iterable<TaskLike>, config: RunConfig) => AsyncIterableIterator<TaskResponse, undefined>

/** `stream` runs the tasks; a training passes its own, so that its runs are part of the training. */
export function distribute(tasks: RolloutTasks, { agent, ...run }: ExecutorConfig, stream: Stream): TrajectoryStream {
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

/** Arrays stay arrays, because only tasks in an array can depend on each other. */
function readyTasks(
  tasks: RolloutTasks,
  ready: (task: RolloutTask, index: number) => unknown,
): Iterable<unknown> | AsyncIterable<unknown> {
  if (Array.isArray(tasks)) return tasks.map(ready)
  // `Runners` reports invalid tasks.
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
      `task '${task.id ?? `#${index + 1}`}' has no agent; set \`agent\` of the task, or of the ParallelTaskExecutor`,
    )
  return { ...task, agent }
}
