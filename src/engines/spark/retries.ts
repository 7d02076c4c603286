/** The delay before slots are requested again, doubled each time. */
const WAIT_MS = { first: 500, longest: 30_000 } as const
/** The limit of failures in a row without a worker in between. */
const MOST = 3

/** Decides when slots may be requested again, and when to stop trying. */
export class Retries {
  #failures = 0
  #failedAt = 0
  #at = 0
  #reason: Error | undefined

  /** Whether slots may be requested now. */
  get due(): boolean {
    return this.#reason === undefined && Date.now() >= this.#at
  }

  /** The last error, if the limit is reached. */
  get reason(): Error | undefined {
    return this.#reason
  }

  /**
   * A request for slots produced no worker. Returns true if this was the last try. `askedAt`: queries that ran together and
   * fail together count as one failure.
   */
  failed(error: Error, askedAt: number): boolean {
    if (askedAt >= this.#failedAt) this.#failures++
    this.#failedAt = Date.now()
    this.later()
    if (this.#failures >= MOST) this.#reason = error
    return this.#reason !== undefined
  }

  /** Delays the next request without counting a failure. */
  later(): void {
    this.#at = Date.now() + Math.min(WAIT_MS.longest, WAIT_MS.first * 2 ** this.#failures)
  }

  /** A worker has started, or the cluster has changed: resets the count. */
  reset(): void {
    this.#failures = 0
    this.#reason = undefined
  }
}
