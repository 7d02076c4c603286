/** How much work a worker is given ahead of what it is doing: enough that it never waits for us. */
const PREFETCH_MS = 20
const PREFETCH_MAX = 1024
const START = 2
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
  }

  /** So many tasks came back. */
  done(count: number, now: number): void {
    const elapsed = Math.max(now - this.#measuredAt, 0.01)
    this.#measuredAt = now
    this.#rate += NEWEST * (count / elapsed - this.#rate)
    this.#update()
  }

  #update(): void {
    this.limit = this.#grown + Math.min(PREFETCH_MAX, Math.floor(this.#rate * PREFETCH_MS))
  }
}
