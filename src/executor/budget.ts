import type { Usage } from '../trajectory/usage.ts'

export interface BudgetLimits {
  readonly maxCostUsd?: number | undefined
  /** In and out together. */
  readonly maxTokens?: number | undefined
}

/** What was spent. */
interface Spent {
  readonly costUsd: number
  readonly tokens: number
}

type Amounts = { -readonly [Key in keyof Spent]: Spent[Key] }

/** Until so many tasks have shown what a task costs, no more run at once than have ended, and one. */
const TASKS_THAT_SHOW = 10
/** A run may exceed a limit by this share of it, or by one task if that is more. */
const OVERSHOOT = 0.05

/**
 * What a run may spend and what it has spent. All reported usage counts, also of attempts that failed, crashed or came late,
 * and of graders. For each task in flight the largest cost so far is reserved, so that tasks that end after the limit was
 * reached do not exceed it by much.
 */
export class Budget {
  readonly #limits: readonly (readonly [key: keyof Spent, limit: number])[]
  readonly #spent: Amounts
  /** What each task in flight has spent so far, by its index. */
  readonly #open = new Map<number, Amounts>()
  /** The most that one task has spent. */
  readonly #largest: Amounts = { costUsd: 0, tokens: 0 }
  #ended = 0
  /** Tasks that have ended and cost something. */
  #shown = 0

  /** `spent`: by earlier sessions. */
  constructor({ maxCostUsd, maxTokens }: BudgetLimits, spent: Usage) {
    this.#limits = [
      ...(maxCostUsd === undefined ? [] : [['costUsd', maxCostUsd] as const]),
      ...(maxTokens === undefined ? [] : [['tokens', maxTokens] as const]),
    ]
    this.#spent = amountsOf(spent)
  }

  /** `task`: the index of the task that spent it. For a sub-task, that of the task it belongs to. */
  spend(usage: Usage, task: number): void {
    const amounts = amountsOf(usage)
    const open = this.#open.get(task)
    for (const key of ['costUsd', 'tokens'] as const) {
      this.#spent[key] += amounts[key]
      if (open) this.#largest[key] = Math.max(this.#largest[key], (open[key] += amounts[key]))
    }
  }

  get isSpent(): boolean {
    return this.#limits.some(([key, limit]) => this.#spent[key] >= limit)
  }

  /** Starts the task if the budget is likely to be enough for it. A task may start if no other one runs and the budget is not spent. */
  admit(task: number): boolean {
    if (this.isSpent || !this.#hasRoom()) return false
    this.#open.set(task, { costUsd: 0, tokens: 0 })
    return true
  }

  /** The task has ended, and was graded. */
  release(task: number): void {
    const spent = this.#open.get(task)
    if (spent === undefined) return
    this.#open.delete(task)
    this.#ended++
    if (this.#limits.some(([key]) => spent[key] > 0)) this.#shown++
  }

  #hasRoom(): boolean {
    if (this.#open.size === 0) return true
    if (this.#shown < TASKS_THAT_SHOW && this.#open.size > this.#ended) return false
    return this.#limits.every(([key, limit]) => {
      const largest = this.#largest[key]
      let expected = this.#spent[key] + largest
      for (const open of this.#open.values()) expected += Math.max(0, largest - open[key])
      return expected <= limit + Math.max(limit * OVERSHOOT, largest)
    })
  }

  /** Such as "$1.02 of $1.00, 12,034 of 10,000 tokens". */
  toString(): string {
    return this.#limits
      .map(([key, limit]) =>
        key === 'costUsd'
          ? `${dollars(this.#spent[key])} of ${dollars(limit)}`
          : `${this.#spent[key].toLocaleString('en-US')} of ${limit.toLocaleString('en-US')} tokens`,
      )
      .join(', ')
  }
}

const amountsOf = ({ costUsd = 0, inputTokens = 0, outputTokens = 0 }: Usage): Amounts => ({
  costUsd,
  tokens: inputTokens + outputTokens,
})

/** Small sums keep their significant digits. */
const dollars = (usd: number) => `$${usd >= 1 ? usd.toFixed(2) : usd.toPrecision(3)}`
