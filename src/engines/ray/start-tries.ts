/** How often in a row a worker may end before its first message; then it is no longer restarted. */
export const START_TRIES = 3
/** The same for workers that somebody killed, perhaps the kernel because memory was short for a while. */
export const KILLED_TRIES = 20
const AGAIN_MS = 500

/** Counts failed starts by worker number. */
export class StartTries {
  readonly #failed = new Map<number, number>()
  readonly #killed = new Map<number, number>()

  /** A start has failed. Returns after how many ms to retry; undefined if the limit is reached. */
  failed(place: number, final: boolean): number | undefined {
    const failures = final ? START_TRIES : (this.#failed.get(place) ?? 0) + 1
    this.#failed.set(place, failures)
    return failures < START_TRIES ? AGAIN_MS * 2 ** (failures - 1) : undefined
  }

  /** The worker was killed before its first message. Returns whether to retry. */
  killed(place: number): boolean {
    const times = (this.#killed.get(place) ?? 0) + 1
    this.#killed.set(place, times)
    return times < KILLED_TRIES
  }

  /** Whether this worker may be started again. */
  allows(place: number): boolean {
    return (this.#failed.get(place) ?? 0) < START_TRIES
  }

  /** The worker with this number has started. */
  worked(place: number): void {
    this.#failed.delete(place)
    this.#killed.delete(place)
  }

  /** The cluster has changed: all may be tried again. */
  reset(): void {
    this.#failed.clear()
    this.#killed.clear()
  }
}
