import type { EpisodeContext } from './episode-context.ts'
import type { PolicyMode, Question } from './policy.ts'

/** The question for a policy. Rarely used properties are created on access. */
export class StepQuestion implements Question {
  readonly observation: unknown
  readonly candidates: readonly unknown[] | undefined
  readonly mode: PolicyMode
  readonly step: number
  readonly #own: EpisodeContext

  constructor(
    observation: unknown,
    candidates: readonly unknown[] | undefined,
    mode: PolicyMode,
    step: number,
    own: EpisodeContext,
  ) {
    this.observation = observation
    this.candidates = candidates
    this.mode = mode
    this.step = step
    this.#own = own
  }

  get random() {
    return this.#own.policyRandom
  }

  get task() {
    return this.#own.task
  }

  get signal() {
    return this.#own.signal
  }
}
