/** Tokens and cost of a step, or of a whole task. */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  costUsd?: number
}

export const USAGE_KEYS = ['inputTokens', 'outputTokens', 'cachedTokens', 'costUsd'] as const

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
