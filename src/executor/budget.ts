import type { Usage } from '../trajectory/usage.ts'

export interface BudgetLimits {
  readonly maxCostUsd?: number | undefined
  /** In and out together. */
  readonly maxTokens?: number | undefined
}

/** What was spent. */
export interface Spent {
  readonly costUsd: number
  readonly tokens: number
}

/** What a run may spend and what it has spent. All reported usage counts, also of attempts that failed, crashed or came late. */
export class Budget {
  readonly #limits: BudgetLimits
  #costUsd: number
  #tokens: number

  /** `spent`: by earlier sessions. */
  constructor(limits: BudgetLimits, { costUsd, tokens }: Spent) {
    this.#limits = limits
    this.#costUsd = costUsd
    this.#tokens = tokens
  }

  spend({ costUsd = 0, inputTokens = 0, outputTokens = 0 }: Usage): void {
    this.#costUsd += costUsd
    this.#tokens += inputTokens + outputTokens
  }

  get isSpent(): boolean {
    const { maxCostUsd = Infinity, maxTokens = Infinity } = this.#limits
    return this.#costUsd >= maxCostUsd || this.#tokens >= maxTokens
  }

  /** Such as "$1.02 of $1.00, 12,034 of 10,000 tokens". */
  toString(): string {
    const { maxCostUsd, maxTokens } = this.#limits
    const parts: string[] = []
    if (maxCostUsd !== undefined) parts.push(`${dollars(this.#costUsd)} of ${dollars(maxCostUsd)}`)
    if (maxTokens !== undefined)
      parts.push(`${this.#tokens.toLocaleString('en-US')} of ${maxTokens.toLocaleString('en-US')} tokens`)
    return parts.join(', ')
  }
}

/** Small sums keep their significant digits. */
const dollars = (usd: number) => `$${usd >= 1 ? usd.toFixed(2) : usd.toPrecision(3)}`
