/** How often in a row a worker may end before its first message; then it is no longer restarted. */
export const START_TRIES = 3
const AGAIN_MS = 500

/** Counts failed starts by worker number. */
export class StartTries {
  readonly #failed = new Map<number, number>()

  /** A start has failed. Returns after how many ms to retry; undefined if the limit is reached. */
  failed(place: number, final: boolean): number | undefined {
    const failures = final ? START_TRIES : (this.#failed.get(place) ?? 0) + 1
    this.#failed.set(place, failures)
    return failures < START_TRIES ? AGAIN_MS * 2 ** (failures - 1) : undefined
  }

  /** Whether this worker may be started again. */
  allows(place: number): boolean {
    return (this.#failed.get(place) ?? 0) < START_TRIES
  }

  /** The worker with this number has started. */
  worked(place: number): void {
    this.#failed.delete(place)
  }

  /** The cluster has changed: all may be tried again. */
  reset(): void {
    this.#failed.clear()
  }
}
