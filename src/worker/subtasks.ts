import { ManyworldsError } from '../errors.ts'
import type { Channel } from '../protocol/channel.ts'
import type { DriverMessage, Reply, WorkerMessage } from '../protocol/messages.ts'
import { pack, unpack } from '../protocol/pack.ts'
import { responseFromWire } from '../response.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { checkTask, packTask } from '../task-checks.ts'
import { refForDriver } from './bundles.ts'
import type { TaskContext } from './context.ts'

interface Call {
  readonly task: TaskContext
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Slots {
  giveSlot(task: TaskContext): void
  takeSlot(task: TaskContext): boolean
  flush(): void
}

/**
 * Sub-tasks: a task asks the driver to run others and waits. While it waits its slot belongs to others (else a parent and
 * its only child would wait for each other on a single worker); when its last call is answered it takes a slot again first.
 */
export class SubTasks {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #slots: Slots
  readonly #calls = new Map<number, Call>()
  readonly #resuming: { task: TaskContext; resume: () => void }[] = []
  #next = 1

  constructor(channel: Channel<WorkerMessage, DriverMessage>, slots: Slots) {
    this.#channel = channel
    this.#slots = slots
  }

  runTaskOf(task: TaskContext): (tasks: TaskLike | readonly TaskLike[]) => Promise<unknown> {
    return async (tasks, ...more: unknown[]) => {
      if (more.length > 0)
        throw new ManyworldsError(
          'CONFIG_INVALID',
          'ctx.runTask takes tasks only; timeoutMs and maxAttempts belong on each task',
        )
      const list = Array.isArray(tasks) ? (tasks as readonly TaskLike[]) : [tasks as TaskLike]
      const responses = (await this.#ask(task, list)) as TaskResponse[]
      if (!Array.isArray(tasks)) return responses[0]
      return new Map(responses.map((response) => [response.id, response]))
    }
  }

  #ask(task: TaskContext, tasks: readonly TaskLike[]): Promise<unknown> {
    if (task.settled) return Promise.reject(task.signal.reason)
    const request = this.#next++
    let size = 0
    const items = tasks.map((literal, index) => {
      checkTask(literal, index)
      if (literal.dependsOn !== undefined)
        throw new ManyworldsError(
          'DEPENDENCY_NEEDS_ARRAY',
          'sub-tasks cannot have `dependsOn`; await one ctx.runTask() before the next',
        )
      const { input, info, size: inputSize } = packTask(literal, index)
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
    const answer = new Promise((resolve, reject) => this.#calls.set(request, { task, resolve, reject }))
    // What it recorded so far goes first: the driver must not learn of the children before the parent's own steps.
    this.#slots.flush()
    const { lease } = task
    this.#channel.post({ type: 'subtasks', request, lease, ordinal: task.subTaskCalls++, tasks: items }, size, lease)
    if (task.waitingCalls++ === 0) this.#slots.giveSlot(task)
    return answer
  }

  onReply(reply: Reply): void {
    const call = this.#calls.get(reply.request)
    if (!call) return
    this.#calls.delete(reply.request)
    const resume = () => {
      if (reply.ok) call.resolve((unpack(reply.value) as unknown[]).map(responseFromWire))
      else {
        const { code, message } = unpack(reply.value) as { code: ManyworldsError['code']; message: string }
        call.reject(new ManyworldsError(code, message))
      }
    }
    if (--call.task.waitingCalls > 0 || call.task.settled || this.#slots.takeSlot(call.task)) resume()
    else this.#resuming.push({ task: call.task, resume })
  }

  /** Lets a parent go on in the slot that has just become free. */
  resumeOne(): boolean {
    for (let next = this.#resuming.shift(); next; next = this.#resuming.shift()) {
      if (next.task.settled) {
        next.resume()
        continue
      }
      this.#slots.takeSlot(next.task)
      next.resume()
      return true
    }
    return false
  }

  /** The parent was timed out or cancelled: its calls end now, its children are the driver's to cancel. */
  abandon(task: TaskContext, reason: Error): void {
    for (const [request, call] of this.#calls) {
      if (call.task !== task) continue
      this.#calls.delete(request)
      call.reject(reason)
    }
  }
}
