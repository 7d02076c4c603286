import { dirname } from 'node:path'
import type { RunConfig } from '../../run-config.ts'
import { newRunId } from '../../store/run-path.ts'

interface Wishes {
  readonly runId: string | undefined
  /** The run to resume and its file; or `auto`. */
  readonly resume: { readonly runId: string; readonly file: string } | 'auto' | undefined
  readonly retryFailed: boolean
  readonly acceptChanges?: boolean
}

/**
 * Names the runs of a script, which may make several, one after the other. Runs that the script does not name get the
 * name of the first and a number: `nightly`, `nightly-2`, … So all of them are found again when the script is resumed.
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
  name(config: RunConfig): Pick<RunConfig, 'runId' | 'resume' | 'retryFailed' | 'acceptChanges' | 'store'> {
    const { resume, retryFailed, acceptChanges } = this.#wishes
    const first = this.#runs++ === 0
    const given = config.runId ?? (config.resume === 'auto' ? undefined : config.resume)
    const own = first && this.#base !== undefined ? undefined : given
    this.#base ??= own ?? newRunId()
    const runId = own ?? (first ? this.#base : `${this.#base}-${this.#runs}`)
    if (resume === undefined) return { runId, ...(config.resume === undefined ? {} : { resume: 'auto' }) }
    const retry = { ...(retryFailed && { retryFailed }), ...(acceptChanges && { acceptChanges }) }
    if (resume === 'auto') return { runId, resume, ...retry }
    // The named run is in the file that was found. The other runs, if they were started, are in the same file or in the
    // same folder.
    const { file } = resume
    return runId === resume.runId
      ? { runId, resume: runId, store: file, ...retry }
      : { runId, resume: 'auto', store: dirname(file), ...retry }
  }
}
