/** How much work a worker is given ahead of what it is doing: enough that it never waits for us. */
const PREFETCH_MS = 20
const PREFETCH_MAX = 1024
const START = 2
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
  #measuredAt = 0
  #count = 0
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
    this.#measuredAt = now
    this.#count = 0
  }

  /** So many tasks came back. */
  done(count: number, now: number): void {
    this.#count += count
    const elapsed = now - this.#measuredAt
    if (elapsed < MEASURE_MS) return
    this.#rate += NEWEST * (this.#count / elapsed - this.#rate)
    this.#measuredAt = now
    this.#count = 0
    this.#update()
  }

  #update(): void {
    this.limit = this.#grown + Math.min(PREFETCH_MAX, Math.floor(this.#rate * PREFETCH_MS))
  }
}
