const AT_LEAST_MS = 900
/** At most one part in this many of the time is spent on reading. */
const ONE_IN = 10

/** Limits how often something is read that may take long. */
export class Pace {
  #next = 0

  get isTime(): boolean {
    return performance.now() >= this.#next
  }

  async measure<T>(read: () => Promise<T>): Promise<T> {
    const began = performance.now()
    try {
      return await read()
    } finally {
      this.#next = performance.now() + Math.max(AT_LEAST_MS, ONE_IN * (performance.now() - began))
    }
  }
}
