import type { Truncation } from '../../trajectory/episode.ts'
import type { Usage } from '../../trajectory/usage.ts'

export interface EpisodeLimits {
  readonly maxTurns: number
  readonly maxTokens: number | null
  readonly maxCostUsd: number | null
}

/** Counts what an episode uses of its limits. */
export class Spending {
  readonly #limits: EpisodeLimits
  #tokens = 0
  #costUsd = 0
  #turns = 0

  constructor(limits: EpisodeLimits) {
    this.#limits = limits
  }

  readonly add = ({ inputTokens = 0, outputTokens = 0, costUsd = 0 }: Usage): void => {
    this.#turns++
    this.#tokens += inputTokens + outputTokens
    this.#costUsd += costUsd
  }

  /** The limit that is reached, if any. */
  get reached(): Truncation | undefined {
    const { maxTurns, maxTokens, maxCostUsd } = this.#limits
    if (this.#tokens >= (maxTokens ?? Infinity) || this.#costUsd >= (maxCostUsd ?? Infinity)) return 'budget'
    return this.#turns >= maxTurns ? 'maxSteps' : undefined
  }
}
