import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'

/** A timer that fires this late was held up by a blocked event loop: answers may be waiting in it. */
const LATE_MS = 50
/** While code of a task that was given up still runs, the event loop must move at least this often. */
const GIVEN_UP_MS = 1000

/**
 * Timeouts count from the start of a task, so the worker owns them. The nearest deadline also stands in memory that the
 * watchdog thread reads: if nobody moves it on in time, the event loop is blocked.
 */
export class Timeouts {
  readonly #live: ReadonlyMap<number, TaskContext>
  readonly #expire: (task: TaskContext, ms: number) => void
  readonly #shared: Float64Array
  readonly #givenUp = new Set<TaskContext>()
  /** Publishes the next deadline when the time of the one that is published has come. */
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
   * Stops the clock of a task that waits for the driver, for this long at most. Until then, and for what is left of its own
   * time, the task may also block the event loop.
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
    // At once: the loop may be blocked when the old deadline comes, and the watchdog would end the worker.
    if (deadline === this.#shared[0]) this.#publishNext(0)
  }

  go(task: TaskContext, asks: Asks): void {
    asks.stoodMs += performance.now() - asks.standsSince
    asks.standsSince = 0
    if (task.timer !== undefined) this.#set(task, asks.msLeft)
  }

  /** The task is answered, and its code goes on: if it blocks the loop now, nobody's timeout would tell. */
  watchGivenUp(task: TaskContext): void {
    this.#givenUp.add(task)
    const deadline = Date.now() + GIVEN_UP_MS
    if (deadline < this.#shared[0]!) this.#publish(deadline)
  }

  #fire(task: TaskContext, ms: number): void {
    if (Date.now() - task.deadline < LATE_MS) this.#expire(task, ms)
    // Let the I/O that finished during the block be heard first: its task may have been in time.
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
