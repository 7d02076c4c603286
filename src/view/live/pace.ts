const AT_LEAST_MS = 900
/** The share of time that may be spent on reading: one in so many. */
const ONE_IN = 10

/** Keeps something that may take long from being read too often. */
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
