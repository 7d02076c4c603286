import type { RunConfig } from '../../run-config.ts'
import { newRunId } from '../../store/run-path.ts'

interface Wishes {
  readonly runId: string | undefined
  /** The id of a run, or `auto`. */
  readonly resume: string | undefined
  readonly retryFailed: boolean
}

/**
 * A script may make several runs, one after the other. Those that it does not name itself are called after the first:
 * `nightly`, `nightly-2`, … so that all of them are found again when the script is run a second time.
 */
export class Naming {
  readonly #wishes: Wishes
  #base: string | undefined
  #runs = 0

  constructor(wishes: Wishes) {
    this.#wishes = wishes
    this.#base = wishes.runId ?? (wishes.resume === 'auto' ? undefined : wishes.resume)
  }

  /** The name of the next run of the script, and whether it is resumed. */
  name(config: RunConfig): Pick<RunConfig, 'runId' | 'resume' | 'retryFailed'> {
    const { resume, retryFailed } = this.#wishes
    const first = this.#runs++ === 0
    const given = config.runId ?? (config.resume === 'auto' ? undefined : config.resume)
    const own = first && this.#base !== undefined ? undefined : given
    this.#base ??= own ?? newRunId()
    const runId = own ?? (first ? this.#base : `${this.#base}-${this.#runs}`)
    if (resume === undefined) return { runId, ...(config.resume === undefined ? {} : { resume: 'auto' }) }
    // The first must be there, and was looked for before the script began; the others may not have been begun.
    return { runId, resume: runId === resume ? resume : 'auto', ...(retryFailed ? { retryFailed } : {}) }
  }
}
