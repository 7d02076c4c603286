/** Tokens and money that a step or a whole task used. */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  costUsd?: number
}

export const USAGE_KEYS = ['inputTokens', 'outputTokens', 'cachedTokens', 'costUsd'] as const

/** Adds what one step used to a total; what no step reported stays left out. */
export function addUsage(total: Usage, usage: Usage | undefined): void {
  if (!usage) return
  for (const key of USAGE_KEYS) {
    const value = usage[key]
    if (value !== undefined) total[key] = (total[key] ?? 0) + value
  }
}

/** Sums what the steps used. */
export function totalUsage(steps: Iterable<{ readonly usage?: Usage | undefined }>): Usage {
  const total: Usage = {}
  for (const { usage } of steps) addUsage(total, usage)
  return total
}
