import { Problem } from '../../network/http-problem.ts'

/** Limits how many of something are open at once. */
export class Limit {
  readonly #most: number
  readonly #what: string
  #open = 0

  constructor(most: number, what: string) {
    this.#most = most
    this.#what = what
  }

  /** Dispose of it when done. Throws if there are too many. */
  take(): Disposable {
    if (this.#open >= this.#most)
      throw new Problem(
        503,
        'BUSY',
        `the limit of ${this.#most} ${this.#what} at once is reached; close one, or try again later`,
      )
    this.#open++
    return { [Symbol.dispose]: () => void this.#open-- }
  }
}
