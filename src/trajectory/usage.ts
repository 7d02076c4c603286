/** Tokens and cost of a step, or of a whole task. */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  costUsd?: number
}

export const USAGE_KEYS = ['inputTokens', 'outputTokens', 'cachedTokens', 'costUsd'] as const

/** More than any step can use: such a number is a mistake or an attack, and would end the run's budget. */
const MOST: Readonly<Record<keyof Usage, number>> = {
  inputTokens: 1e12,
  outputTokens: 1e12,
  cachedTokens: 1e12,
  costUsd: 1e6,
}

/** Whether a number can be the usage of a step: it lowers no sum, and no sum becomes NaN or infinite with it. */
export const isUsage = (key: keyof Usage, value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MOST[key]

/** What `isUsage` accepts, in words. */
export const usageRange = (key: keyof Usage): string => `a number from 0 to ${MOST[key].toLocaleString('en-US')}`

/** Adds the usage of a step to a total. Fields that no step reports stay undefined. */
export function addUsage(total: Usage, usage: Usage | undefined): void {
  if (!usage) return
  for (const key of USAGE_KEYS) {
    const value = usage[key]
    if (value !== undefined) total[key] = (total[key] ?? 0) + value
  }
}

/** Sums the usage of steps. */
export function totalUsage(steps: Iterable<{ readonly usage?: Usage | undefined }>): Usage {
  const total: Usage = {}
  for (const { usage } of steps) addUsage(total, usage)
  return total
}
