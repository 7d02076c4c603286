import type { Truncation } from '../../trajectory/episode.ts'
import type { Usage } from '../../trajectory/usage.ts'

export interface EpisodeLimits {
  readonly maxTurns: number
  readonly maxTokens: number | null
  readonly maxCostUsd: number | null
}

/** What an episode has used of what it may. */
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

  /** Which limit is reached. */
  get reached(): Truncation | undefined {
    const { maxTurns, maxTokens, maxCostUsd } = this.#limits
    if (this.#tokens >= (maxTokens ?? Infinity) || this.#costUsd >= (maxCostUsd ?? Infinity)) return 'budget'
    return this.#turns >= maxTurns ? 'maxSteps' : undefined
  }
}
