/** A worker holds this much work ahead, so that it never waits for the driver. */
const PREFETCH_MS = 20
const PREFETCH_MAX = 1024
/** Longer tasks are not given ahead: a task queued behind them might start at once in another worker. */
const PREFETCH_HELD_MS = 40
const START = 1
/** Shorter measurements are unreliable: answers come in bursts. */
const MEASURE_MS = 2
/** Weight of the newest measurement of a worker's rate. */
const NEWEST = 0.3

/**
 * How many tasks a worker may hold. The window begins small and grows
 * - up to `concurrency`, each time the worker reports that all its tasks wait for I/O (so that tasks that compute do not pile
 *   up in one worker while another is idle), and
 * - beyond it by as many tasks as the worker finishes in PREFETCH_MS: hundreds of tiny tasks, no long ones.
 */
export class Window {
  readonly #concurrency: number
  #grown: number
  #rate = 0
  #heldMs = 0
  /** Since the last measurement: tasks done, and time with something to do. */
  #count = 0
  #busyMs = 0
  #seenAt = 0
  limit: number

  constructor(concurrency: number) {
    this.#concurrency = concurrency
    this.#grown = Math.min(concurrency, START)
    this.limit = this.#grown
  }

  /** All of the worker's tasks wait for I/O. */
  hungry(): void {
    this.#grown = Math.min(this.#concurrency, this.#grown * 2)
    this.#update()
  }

  /** The worker was idle and got a task: the time before says nothing about its speed. */
  wokeUp(now: number): void {
    this.#seenAt = now
  }

  /** True if it holds tasks that it cannot have started. */
  overfull(load: number): boolean {
    return load > this.#grown
  }

  /** `count` tasks ended, which had their slots for `heldMs` in total. */
  done(count: number, heldMs: number, now: number): void {
    this.#heldMs += NEWEST * (heldMs / count - this.#heldMs)
    this.#count += count
    this.#busyMs += now - this.#seenAt
    this.#seenAt = now
    if (this.#busyMs < MEASURE_MS) return
    this.#rate += NEWEST * (this.#count / this.#busyMs - this.#rate)
    this.#busyMs = 0
    this.#count = 0
    this.#update()
  }

  #update(): void {
    const prefetch = this.#heldMs > PREFETCH_HELD_MS ? 0 : Math.floor(this.#rate * PREFETCH_MS)
    this.limit = this.#grown + Math.min(PREFETCH_MAX, prefetch)
  }
}
