import type { TaskErrorCode } from '../errors.ts'
import type { ModelTransport } from '../models/worker/transport.ts'
import { whyTooManyKeys } from '../protocol/count-keys.ts'
import { type Experience, OUTCOME, type Outcome, type OutcomeStatus } from '../protocol/messages.ts'
import { lastPackedSize, NotPackable, pack } from '../protocol/pack.ts'
import type { WorkerBlobs } from './blobs.ts'
import type { TaskContext } from './context.ts'
import { errorItem } from './error-item.ts'
import type { Recycling } from './recycling.ts'
import type { Requests } from './requests.ts'
import type { SideThread } from './side.ts'
import type { Slots } from './slots.ts'
import type { Timeouts } from './timeouts.ts'

/** How long a timed-out or cancelled task keeps its slot, so that code that obeys its signal can end first. */
const ZOMBIE_GRACE_MS = 500

interface Parts {
  readonly live: Map<number, TaskContext>
  readonly slots: Slots
  readonly recycling: Recycling
  readonly requests: Requests
  readonly models: ModelTransport
  readonly blobs: WorkerBlobs
  readonly side: SideThread
  readonly timeouts: Timeouts
  /** Sends the outcome of a task to the driver. */
  outcome(outcome: Outcome, size: number): void
  /** Sends what is buffered. */
  flush(): void
  /** Frees the slot of this task. */
  release(task: TaskContext): void
  /** Environment variables that were withheld from this worker, for a hint in errors that name one. */
  withheldEnv(): readonly string[]
}

/**
 * How tasks end. Two things happen, in either order: the driver gets the one outcome (`settle`), and the task's code returns or
 * throws (`finish`). What the code does after `settle` is ignored.
 */
export class Endings {
  readonly #parts: Parts
  /** Abandoned tasks whose code still runs. */
  #zombies = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The task's code has returned or thrown. */
  finish(task: TaskContext, status: OutcomeStatus, value: unknown): void {
    if (!task.settled) {
      if (status === OUTCOME.success) this.#succeed(task, value)
      else this.settle(task, status, this.error('TASK_THREW', value))
    } else if (task.zombie) this.#zombies--
    task.end()
    this.#parts.release(task)
  }

  /**
   * Ends a task for the driver; what its code still does is ignored. `reason`: the task was abandoned, and its pending requests
   * fail with this error.
   */
  settle(
    task: TaskContext,
    status: OutcomeStatus,
    value: unknown,
    size: number = lastPackedSize(value),
    experience?: unknown,
    reason?: Error,
  ): void {
    if (task.settled) return
    if (task.modelCalls?.length && reason === undefined) this.#parts.models.leave(task, status === OUTCOME.success)
    task.settled = true
    const { live, requests, blobs, side, recycling } = this.#parts
    live.delete(task.lease)
    recycling.taskFinished()
    if (task.timer !== undefined) clearTimeout(task.timer)
    this.#parts.timeouts.ended(task)
    const now = performance.now()
    const outcome: Outcome = [task.lease, status, value, Math.round((now - task.startedAt) * 1000)]
    const stoodMs = task.asks?.stoodUntil(now) ?? 0
    if (stoodMs > 0) outcome.push(Math.round(stoodMs * 1000))
    if (experience !== undefined) {
      outcome[4] ??= 0
      outcome[5] = experience
    }
    this.#parts.outcome(outcome, size)
    if (task.asks) requests.end(task, reason)
    if (task.sideAsks > 0) side.end(task.lease, reason)
    if (task.blobs) blobs.leave(task)
  }

  /** Timed out or cancelled: the driver is told at once, the code gets its signal and keeps its slot for a moment. */
  abandon(task: TaskContext, status: OutcomeStatus, code: TaskErrorCode, message: string): void {
    if (task.settled) return
    const error = new DOMException(message, status === OUTCOME.timeout ? 'TimeoutError' : 'AbortError')
    this.settle(task, status, pack({ code, name: error.name, message, stack: undefined }), 0, undefined, error)
    this.#parts.timeouts.watchGivenUp(task)
    task.abort(error)
    setTimeout(() => this.#becomeZombie(task), ZOMBIE_GRACE_MS).unref()
    this.#parts.flush()
  }

  cancel(task: TaskContext, reason: 'cancelled' | 'deadline'): void {
    const [code, message] = cancelText(reason)
    this.abandon(task, OUTCOME.cancelled, code, message)
  }

  cancelUnstarted(lease: number, reason: 'cancelled' | 'deadline'): void {
    const [code, message] = cancelText(reason)
    const error = pack({ code, name: 'AbortError', message, stack: undefined })
    this.#parts.outcome([lease, OUTCOME.cancelled, error, 0], 0)
  }

  /** A thrown value, packed. */
  error(code: TaskErrorCode, thrown: unknown, prefix = ''): unknown {
    return pack(errorItem(code, thrown, this.#parts.withheldEnv(), prefix))
  }

  #succeed(task: TaskContext, answer: unknown): void {
    let packed: unknown
    let size: number
    let experience: unknown
    try {
      packed = pack(answer)
      const tooMany = whyTooManyKeys(packed)
      if (tooMany !== undefined) throw new NotPackable(tooMany)
      size = lastPackedSize(packed)
      experience = packExperience(task)
    } catch (error) {
      const reason = error instanceof NotPackable ? error.message : String(error)
      const message = `the answer cannot be sent: ${reason}; return plain data`
      this.settle(
        task,
        OUTCOME.failed,
        pack({ code: 'ANSWER_NOT_SERIALIZABLE', name: 'TaskError', message, stack: undefined }),
      )
      return
    }
    this.settle(task, OUTCOME.success, packed, size, experience)
  }

  #becomeZombie(task: TaskContext): void {
    if (task.ended) return
    task.zombie = true
    this.#zombies++
    const { slots, recycling, release } = this.#parts
    release(task)
    if (this.#zombies >= Math.max(1, slots.total >> 2))
      recycling.retire('tasks that were timed out or cancelled do not end: they ignore ctx.signal')
  }
}

/** Grade, episode and digest of a task, if it has any. */
function packExperience(task: TaskContext): unknown {
  const { episode } = task
  const digest = task.digest(OUTCOME.success)
  if (episode === undefined && digest === undefined) return undefined
  return pack({ ...(episode && { episode }), ...(digest !== undefined && { digest }) } satisfies Experience)
}

const cancelText = (reason: 'cancelled' | 'deadline'): [TaskErrorCode, string] =>
  reason === 'deadline'
    ? ['RUN_DEADLINE', 'the run reached its deadline']
    : ['TASK_CANCELLED', 'the task was cancelled']
