import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'
import { SHARED } from './watchdog-contract.ts'

/** A timer that fires this late was delayed by a blocked event loop, in which answers may be waiting. */
const LATE_MS = 50
/** While code of an abandoned task still runs, the event loop must turn at least this often. */
const GIVEN_UP_MS = 1000

/**
 * Timeouts count from the start of a task, so the worker owns them. The nearest deadline is also in memory shared with the
 * watchdog thread: if it is not updated in time, the event loop is blocked.
 */
export class Timeouts {
  readonly #live: ReadonlyMap<number, TaskContext>
  readonly #expire: (task: TaskContext, ms: number) => void
  readonly #shared: Float64Array
  readonly #givenUp = new Set<TaskContext>()
  /** The running task whose deadline is published. */
  #due: TaskContext | undefined
  /** Publishes the next deadline when the published one has passed. */
  #mover: NodeJS.Timeout | undefined

  constructor(
    live: ReadonlyMap<number, TaskContext>,
    shared: Float64Array,
    expire: (task: TaskContext, ms: number) => void,
  ) {
    this.#live = live
    this.#shared = shared
    this.#expire = expire
    shared[SHARED.deadline] = Number.POSITIVE_INFINITY
  }

  watch(task: TaskContext, ms: number): void {
    this.#set(task, ms)
  }

  #set(task: TaskContext, ms: number): void {
    task.deadline = Date.now() + ms
    task.timer = setTimeout(() => this.#fire(task, task.timeoutMs), ms)
    this.#note(task.deadline)
    if (task.deadline < this.#shared[SHARED.deadline]!) this.#publish(task.deadline, task)
  }

  /**
   * Stops the clock of a task that waits for the driver, for at most this long. Until then, and for the rest of its own time,
   * the task may also block the event loop.
   */
  stop(task: TaskContext, asks: Asks, limitMs: number): void {
    const { deadline } = task
    const now = Date.now()
    const runs = asks.standsSince === 0
    if (runs) asks.standsSince = performance.now()
    if (task.timer === undefined) return
    if (runs) {
      clearTimeout(task.timer)
      asks.msLeft = Math.max(0, deadline - now)
    }
    task.deadline = Math.max(deadline, now + limitMs + asks.msLeft)
    this.#note(task.deadline)
    // Publish at once: if the event loop is blocked at the old deadline, the watchdog would end the worker.
    if (deadline === this.#shared[SHARED.deadline]) this.#publishNext(0)
  }

  go(task: TaskContext, asks: Asks): void {
    asks.stoodMs += performance.now() - asks.standsSince
    asks.standsSince = 0
    if (task.timer !== undefined) this.#set(task, asks.msLeft)
  }

  /** The task is answered. Its deadline may stay published until it has passed. */
  ended(task: TaskContext): void {
    if (task !== this.#due) return
    this.#due = undefined
    this.#shared[SHARED.isLive] = 0
  }

  /** The task is answered but its code still runs: if it blocks the event loop now, no timeout would notice. */
  watchGivenUp(task: TaskContext): void {
    this.#givenUp.add(task)
    const deadline = Date.now() + GIVEN_UP_MS
    if (deadline < this.#shared[SHARED.deadline]!) this.#publish(deadline, undefined)
  }

  #fire(task: TaskContext, ms: number): void {
    if (Date.now() - task.deadline < LATE_MS) this.#expire(task, ms)
    // Handle I/O that finished during the block first: its task may have been in time.
    else setImmediate(() => this.#expire(task, ms))
  }

  #note(deadline: number): void {
    if (deadline > this.#shared[SHARED.latest]!) this.#shared[SHARED.latest] = deadline
  }

  #publish(deadline: number, task: TaskContext | undefined): void {
    this.#due = task
    this.#shared[SHARED.isLive] = task ? 1 : 0
    this.#shared[SHARED.deadline] = deadline
    clearTimeout(this.#mover)
    this.#mover = setTimeout(() => this.#publishNext(deadline), Math.max(0, deadline - Date.now())).unref()
  }

  /** The nearest deadline after this one. */
  #publishNext(after: number): void {
    let next = Number.POSITIVE_INFINITY
    let due: TaskContext | undefined
    for (const task of this.#live.values()) {
      if (task.deadline <= after || task.deadline >= next) continue
      next = task.deadline
      due = task
    }
    for (const task of this.#givenUp) if (task.ended) this.#givenUp.delete(task)
    const soon = Date.now() + GIVEN_UP_MS
    if (this.#givenUp.size > 0 && soon < next) this.#publish(soon, undefined)
    else if (due) this.#publish(next, due)
    else this.#shared[SHARED.deadline] = next
  }
}
