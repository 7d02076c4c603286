/** Waits before slots are asked for again that could not be had, doubled each time. */
const WAIT_MS = { first: 500, longest: 30_000 } as const
/** Failures in a row, without a worker in between. */
const MOST = 3

/** When slots may be asked for again, and when that has been tried often enough. */
export class Retries {
  #failures = 0
  #failedAt = 0
  #at = 0
  #reason: Error | undefined

  /** Whether slots may be asked for now. */
  get due(): boolean {
    return this.#reason === undefined && Date.now() >= this.#at
  }

  /** What the last try failed with, if there are to be no more. */
  get reason(): Error | undefined {
    return this.#reason
  }

  /**
   * Slots were had, or could have been, and no worker came of it. `true`: this was the last try. `askedAt`: queries that were
   * under way together and fail together are one failure.
   */
  failed(error: Error, askedAt: number): boolean {
    if (askedAt >= this.#failedAt) this.#failures++
    this.#failedAt = Date.now()
    this.later()
    if (this.#failures >= MOST) this.#reason = error
    return this.#reason !== undefined
  }

  /** It is nobody's failure, but not at once. */
  later(): void {
    this.#at = Date.now() + Math.min(WAIT_MS.longest, WAIT_MS.first * 2 ** this.#failures)
  }

  /** A worker has been started, or the cluster is another one now. */
  reset(): void {
    this.#failures = 0
    this.#reason = undefined
  }
}
