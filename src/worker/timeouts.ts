import type { TaskContext } from './context.ts'

/** A timer that fires this late was held up by a blocked event loop: answers may be waiting in it. */
const LATE_MS = 50

/**
 * Timeouts count from the start of a task, so the worker owns them. The nearest deadline also stands in memory that the
 * watchdog thread reads: if nobody moves it on in time, the event loop is blocked.
 */
export class Timeouts {
  readonly #live: ReadonlyMap<number, TaskContext>
  readonly #expire: (task: TaskContext, ms: number) => void
  readonly #shared: Float64Array

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
    task.deadline = Date.now() + ms
    task.timer = setTimeout(() => this.#fire(task, ms), ms)
    if (task.deadline < this.#shared[0]!) this.#publish(task.deadline)
  }

  #fire(task: TaskContext, ms: number): void {
    if (Date.now() - task.deadline < LATE_MS) this.#expire(task, ms)
    // Let the I/O that finished during the block be heard first: its task may have been in time.
    else setImmediate(() => this.#expire(task, ms))
  }

  #publish(deadline: number): void {
    this.#shared[0] = deadline
    setTimeout(() => this.#moveOn(deadline), Math.max(0, deadline - Date.now())).unref()
  }

  #moveOn(published: number): void {
    if (this.#shared[0] !== published) return
    let next = Number.POSITIVE_INFINITY
    for (const task of this.#live.values()) if (task.deadline > published && task.deadline < next) next = task.deadline
    if (next === Number.POSITIVE_INFINITY) this.#shared[0] = next
    else this.#publish(next)
  }
}
