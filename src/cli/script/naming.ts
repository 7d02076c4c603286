import { dirname } from 'node:path'
import type { RunConfig } from '../../run-config.ts'
import { newRunId } from '../../store/run-path.ts'

interface Wishes {
  readonly runId: string | undefined
  /** The run to go on with and its file; or `auto`. */
  readonly resume: { readonly runId: string; readonly file: string } | 'auto' | undefined
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
    this.#base = wishes.runId ?? (typeof wishes.resume === 'object' ? wishes.resume.runId : undefined)
  }

  /** The name of the next run of the script, and whether it is resumed. */
  name(config: RunConfig): Pick<RunConfig, 'runId' | 'resume' | 'retryFailed' | 'store'> {
    const { resume, retryFailed } = this.#wishes
    const first = this.#runs++ === 0
    const given = config.runId ?? (config.resume === 'auto' ? undefined : config.resume)
    const own = first && this.#base !== undefined ? undefined : given
    this.#base ??= own ?? newRunId()
    const runId = own ?? (first ? this.#base : `${this.#base}-${this.#runs}`)
    if (resume === undefined) return { runId, ...(config.resume === undefined ? {} : { resume: 'auto' }) }
    const retry = retryFailed ? { retryFailed } : {}
    if (resume === 'auto') return { runId, resume, ...retry }
    // The run that was named is in the very file that was found. The others are there too or beside it, if they were begun.
    const { file } = resume
    return runId === resume.runId
      ? { runId, resume: runId, store: file, ...retry }
      : { runId, resume: 'auto', store: dirname(file), ...retry }
  }
}
