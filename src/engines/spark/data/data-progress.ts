import { runHost } from '../../../runners/run-host.ts'
import { duration } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'

/** After this long, a line says what is being done. The pause before the next line doubles each time, up to a minute. */
const FIRST_MS = 5000
const MOST_MS = 60_000

/** An option of everything that reads from or writes to Spark. */
export interface SparkProgress {
  /** `true`: reports its progress on stderr if it takes more than some seconds. Default: as set for `manyworlds run`, else false. */
  readonly progress?: boolean
}

/**
 * Reports the progress of a read or write on stderr while it is waited for. Quick ones report nothing. Neither does a read that
 * is ahead of its reader: that is normal, because tasks take longer than rows.
 */
export class DataProgress {
  readonly #doing: string
  readonly #figures: () => string
  readonly #tell: ((line: string) => void) | undefined
  #pauseMs: number
  readonly #began = performance.now()
  #said = false

  /** `doing`: such as 'reading table questions'. `figures`: the progress, such as '4,000 rows'. */
  constructor({ progress }: SparkProgress, doing: string, figures: () => string, firstMs = FIRST_MS) {
    this.#doing = doing
    this.#figures = figures
    this.#pauseMs = firstMs
    this.#tell = progress === undefined ? runHost()?.dataStep : progress ? say : undefined
  }

  /** Awaits a part of the work, and reports if that takes long. */
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

  /** The work is done. Reports it only if something was reported before. `result`: such as '10,000 rows'. */
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
