/** So often in a row a worker may end before it has said anything; then its place is given up. */
export const START_TRIES = 3
const AGAIN_MS = 500

/** Counts starts that came to nothing, by the place of the worker. */
export class StartTries {
  readonly #failed = new Map<number, number>()

  /** A start has failed. Answers after how many ms to try again; undefined if it was tried often enough. */
  failed(place: number, final: boolean): number | undefined {
    const failures = final ? START_TRIES : (this.#failed.get(place) ?? 0) + 1
    this.#failed.set(place, failures)
    return failures < START_TRIES ? AGAIN_MS * 2 ** (failures - 1) : undefined
  }

  /** Whether it may be tried. */
  allows(place: number): boolean {
    return (this.#failed.get(place) ?? 0) < START_TRIES
  }

  /** It works there. */
  worked(place: number): void {
    this.#failed.delete(place)
  }

  /** Something is different now: all may be tried again. */
  reset(): void {
    this.#failed.clear()
  }
}
