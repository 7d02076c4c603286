import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'

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
    shared[0] = Number.POSITIVE_INFINITY
  }

  watch(task: TaskContext, ms: number): void {
    this.#set(task, ms)
  }

  #set(task: TaskContext, ms: number): void {
    task.deadline = Date.now() + ms
    task.timer = setTimeout(() => this.#fire(task, task.timeoutMs), ms)
    if (task.deadline < this.#shared[0]!) this.#publish(task.deadline)
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
    // Publish at once: if the event loop is blocked at the old deadline, the watchdog would end the worker.
    if (deadline === this.#shared[0]) this.#publishNext(0)
  }

  go(task: TaskContext, asks: Asks): void {
    asks.stoodMs += performance.now() - asks.standsSince
    asks.standsSince = 0
    if (task.timer !== undefined) this.#set(task, asks.msLeft)
  }

  /** The task is answered but its code still runs: if it blocks the event loop now, no timeout would notice. */
  watchGivenUp(task: TaskContext): void {
    this.#givenUp.add(task)
    const deadline = Date.now() + GIVEN_UP_MS
    if (deadline < this.#shared[0]!) this.#publish(deadline)
  }

  #fire(task: TaskContext, ms: number): void {
    if (Date.now() - task.deadline < LATE_MS) this.#expire(task, ms)
    // Handle I/O that finished during the block first: its task may have been in time.
    else setImmediate(() => this.#expire(task, ms))
  }

  #publish(deadline: number): void {
    this.#shared[0] = deadline
    clearTimeout(this.#mover)
    this.#mover = setTimeout(() => this.#publishNext(deadline), Math.max(0, deadline - Date.now())).unref()
  }

  /** The nearest deadline after this one. */
  #publishNext(after: number): void {
    let next = Number.POSITIVE_INFINITY
    for (const task of this.#live.values()) if (task.deadline > after && task.deadline < next) next = task.deadline
    for (const task of this.#givenUp) if (task.ended) this.#givenUp.delete(task)
    if (this.#givenUp.size > 0) next = Math.min(next, Date.now() + GIVEN_UP_MS)
    if (next === Number.POSITIVE_INFINITY) this.#shared[0] = next
    else this.#publish(next)
  }
}
