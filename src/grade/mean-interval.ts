import { ManyworldsError } from '../errors.ts'
import { quantile, type Tally, tallyOf } from './dirichlet.ts'
import { studentT } from './student-t.ts'

/** Where a mean probably lies. An end is infinite where nothing bounds it; JSON has null for that. */
export interface Interval {
  readonly low: number
  readonly high: number
}

export type Range = readonly [min: number, max: number]

/** Rewards that are sums of weighted parts, such as .7 + .2 + .1, miss what they should be by a rounding error. */
export const ROUNDING = 1e-9
export const DEFAULT_CONFIDENCE = 0.95
/** Below one half an interval need not hold its own estimate. */
const MIN_CONFIDENCE = 0.5
const MAX_CONFIDENCE = 0.9999

export function checkConfidence(confidence: number = DEFAULT_CONFIDENCE): number {
  if (confidence >= MIN_CONFIDENCE && confidence <= MAX_CONFIDENCE) return confidence
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`confidence\` must be a number from ${MIN_CONFIDENCE} to ${MAX_CONFIDENCE}, such as 0.95; it is ${confidence}`,
  )
}

/**
 * An interval for the mean of a population, from independent values of it that lie within `range`: Gaffke's bounds. It assumes
 * nothing else of the population, and it is never of zero width.
 *
 * The lower end is a quantile of the mean under random weights, after one value at the bottom of the range was added: what was
 * not seen may be as bad as can be. The upper end mirrors it. For values that are 0 or 1 this is the exact interval of Clopper and
 * Pearson; for differences of such values it tells a difference exactly when McNemar's exact test does. See docs/decisions/0020-intervals.md.
 */
export function boundedInterval(values: readonly number[], [min, max]: Range, confidence: number): Interval {
  const p = (1 - confidence) / 2
  const mean = meanOf(values)
  const scaled = values.map((value) => Math.min(1, Math.max(0, (value - min) / (max - min))))
  const low = min + (max - min) * quantile(withOne(scaled, 0), p)
  const flipped = scaled.map((value) => 1 - value)
  const high = max - (max - min) * quantile(withOne(flipped, 0), p)
  // Rounding alone could put them on the wrong side.
  return { low: Math.min(low, mean), high: Math.max(high, mean) }
}

const withOne = (values: readonly number[], extra: number): Tally => tallyOf([...values, extra])

/** Student's interval, for values without a known range: right only where the mean of so many values is nearly normal. */
export function studentInterval(values: readonly number[], confidence: number): Interval {
  const n = values.length
  const mean = meanOf(values)
  let squares = 0
  for (const value of values) squares += (value - mean) ** 2
  // One value, or equal ones, say nothing about how far others may lie from them.
  if (n < 2 || squares === 0) return { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY }
  const half = studentT(confidence, n - 1) * Math.sqrt(squares / (n - 1) / n)
  return { low: mean - half, high: mean + half }
}

export function meanOf(values: readonly number[]): number {
  let sum = 0
  for (const value of values) sum += value
  return sum / values.length
}
