/** Tokens and money that a step or a whole task used. */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  costUsd?: number
}

/** What an agent records with `ctx.step()`: one turn of acting and observing. All fields are optional, and yours may be added. */
export interface StepRecord {
  action?: unknown
  observation?: unknown
  reward?: number
  usage?: Usage
  [extra: string]: unknown
}

/** A recorded step, as it stands in a response's `trajectory`. */
export interface Step extends StepRecord {
  /** Place in the trajectory, from 0. */
  readonly index: number
  /** Milliseconds since the attempt started. */
  readonly atMs: number
}

/** Sums what the steps used; what no step reported is left out. */
export function totalUsage(steps: readonly Step[]): Usage {
  const total: Usage = {}
  for (const { usage } of steps) {
    if (typeof usage !== 'object' || usage === null) continue
    for (const key of ['inputTokens', 'outputTokens', 'cachedTokens', 'costUsd'] as const) {
      const value = usage[key]
      if (Number.isFinite(value)) total[key] = (total[key] ?? 0) + value!
    }
  }
  return total
}
