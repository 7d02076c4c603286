import type { Metrics } from './learner.ts'

/** Describes what is wrong with metrics; undefined if they are valid. */
export function wrongMetric(metrics: unknown): string | undefined {
  if (typeof metrics !== 'object' || metrics === null)
    return `metrics must be an object of numbers; they are ${metrics}`
  for (const [name, value] of Object.entries(metrics))
    if (typeof value !== 'number' || !Number.isFinite(value))
      return `metric \`${name}\` is ${String(value)}, not a finite number; look for a division by zero, or a learning rate that is too high`
  return undefined
}

/**
 * Merges the metrics of several steps: maxima (`largest…`) stay maxima, `samples` are summed, the rest are averaged.
 */
export function mergeMetrics(steps: readonly Metrics[]): Metrics {
  if (steps.length === 1) return steps[0]!
  const merged: Record<string, number> = {}
  for (const name of new Set(steps.flatMap((step) => Object.keys(step)))) {
    const values = steps.flatMap((step) => step[name] ?? [])
    const sum = values.reduce((total, value) => total + value, 0)
    if (name.startsWith('largest')) merged[name] = Math.max(...values)
    else merged[name] = name === 'samples' ? sum : sum / values.length
  }
  return merged
}
