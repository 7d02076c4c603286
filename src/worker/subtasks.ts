import { ManyworldsError } from '../errors.ts'
import { SUB_TASKS, type SubTasksAsked } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { responseFromWire } from '../response.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { checkTask, packTask } from '../task-checks.ts'
import { refForDriver } from './bundles.ts'
import type { TaskContext } from './context.ts'
import type { Requests } from './requests.ts'
import { SubTaskResponses } from './subtask-responses.ts'

/** `ctx.runTask`: sends tasks to the driver as a request, and makes responses of the answer. */
export class SubTasks {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  runTaskOf(task: TaskContext): (tasks: TaskLike | readonly TaskLike[]) => Promise<unknown> {
    return async (tasks, ...more: unknown[]) => {
      if (more.length > 0)
        throw new ManyworldsError(
          'CONFIG_INVALID',
          'ctx.runTask takes tasks only; timeoutMs and maxAttempts belong on each task',
        )
      const list = Array.isArray(tasks) ? (tasks as readonly TaskLike[]) : [tasks as TaskLike]
      const responses = await this.#ask(task, list)
      if (!Array.isArray(tasks)) return responses[0]
      return new SubTaskResponses(
        list.map(({ id }) => id),
        responses,
      )
    }
  }

  async #ask(task: TaskContext, tasks: readonly TaskLike[]): Promise<TaskResponse[]> {
    if (task.settled) throw task.whyOver
    let size = 0
    const items = tasks.map((literal, index) => {
      checkTask(literal, index)
      if (literal.dependsOn !== undefined)
        throw new ManyworldsError(
          'DEPENDENCY_NEEDS_ARRAY',
          'sub-tasks cannot have `dependsOn`; await one ctx.runTask() before the next',
        )
      // Sub-tasks are not graded: their parent judges them.
      const { input, shown: info, size: inputSize } = packTask(literal, index)
      size += inputSize
      const { timeoutMs, maxAttempts, requires, rerun } = literal
      const options = { timeoutMs, maxAttempts, requires, rerun, info }
      return {
        id: literal.id,
        ref: refForDriver(literal.agent.ref),
        params: pack(literal.agent.params),
        input,
        options,
      }
    })
    const body: SubTasksAsked = { ordinal: task.subTaskCalls++, tasks: items }
    const answer = await this.#requests.ask(task, { ...ASKING, body, size })
    return (answer as unknown[]).map(responseFromWire)
  }
}

/** The parent releases its slot while it waits. Its clock keeps running: the sub-tasks are its own work. */
const ASKING = {
  service: SUB_TASKS,
  kind: 'one',
  slot: 'give',
  clock: 'runs',
  limitMs: Number.POSITIVE_INFINITY,
  signal: undefined,
  unlimited: true,
} as const
