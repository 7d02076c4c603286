import { runHost } from '../../../runners/run-host.ts'
import { duration } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'

/** Whoever waits for longer is told what for. The pause to the next line is twice as long each time, up to a minute. */
const FIRST_MS = 5000
const MOST_MS = 60_000

/** On every data step of Spark. */
export interface SparkProgress {
  /** `true`: says on stderr what it is doing and how far it is, if that takes more than some seconds. Default: as `manyworlds run` was told, else false. */
  readonly progress?: boolean
}

/**
 * Says how far a data step is, on stderr, while somebody waits for it. One that is quick says nothing, and neither does one that waits
 * for its own user: rows that are read faster than tasks take them are no news.
 */
export class DataProgress {
  readonly #doing: string
  readonly #figures: () => string
  readonly #tell: ((line: string) => void) | undefined
  #pauseMs: number
  readonly #began = performance.now()
  #said = false

  /** `doing`: 'reading table questions'. `figures`: how far it is, '4,000 rows'. */
  constructor({ progress }: SparkProgress, doing: string, figures: () => string, firstMs = FIRST_MS) {
    this.#doing = doing
    this.#figures = figures
    this.#pauseMs = firstMs
    this.#tell = progress === undefined ? runHost()?.dataStep : progress ? say : undefined
  }

  /** Waits for part of it. */
  async during<T>(work: Promise<T>): Promise<T> {
    if (this.#tell === undefined) return work
    let timer = this.#sayLater((next) => {
      timer = next
    })
    try {
      return await work
    } finally {
      clearTimeout(timer)
    }
  }

  /** It is done. Who was told that it takes time is told that it is over. `result`: '10,000 rows'. */
  end(result: string): void {
    if (this.#said) this.#tell?.(`done ${this.#doing}: ${result} in ${this.#took()}`)
  }

  #sayLater(replaced: (timer: NodeJS.Timeout) => void): NodeJS.Timeout {
    return setTimeout(() => {
      this.#say()
      replaced(this.#sayLater(replaced))
    }, this.#pauseMs).unref()
  }

  #say(): void {
    this.#said = true
    this.#pauseMs = Math.min(2 * this.#pauseMs, MOST_MS)
    this.#tell?.(`${this.#doing}: ${this.#figures()} after ${this.#took()}`)
  }

  #took(): string {
    return duration(performance.now() - this.#began)
  }
}
