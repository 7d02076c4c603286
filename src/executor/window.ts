/** How much work a worker is given ahead of what it is doing: enough that it never waits for us. */
const PREFETCH_MS = 20
const PREFETCH_MAX = 1024
/** Tasks that have their slots for longer are not given ahead: one that waits behind them could start at once elsewhere. */
const PREFETCH_HELD_MS = 40
const START = 1
/** Less time than this says nothing: answers come in bursts. */
const MEASURE_MS = 2
/** Weight of the newest measurement of a worker's rate. */
const NEWEST = 0.3

/**
 * How many tasks a worker may hold. It begins small, and grows
 * - towards `concurrency` each time the worker says that all it has is waiting for I/O (so that tasks that compute are
 *   not heaped on one worker while another is idle), and
 * - beyond it by what the worker gets done in PREFETCH_MS: hundreds for tiny tasks, nothing for long ones.
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

  /** Everything given is waiting for I/O. */
  hungry(): void {
    this.#grown = Math.min(this.#concurrency, this.#grown * 2)
    this.#update()
  }

  /** The worker was given something after it had nothing: time before now says nothing about its speed. */
  wokeUp(now: number): void {
    this.#seenAt = now
  }

  /** True if it holds tasks that it cannot have started. */
  overfull(load: number): boolean {
    return load > this.#grown
  }

  /** So many tasks came back, which had their slots for so long in all. */
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
