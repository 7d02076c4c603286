import { ManyworldsError } from '../errors.ts'
import { quantile, type Tally, tallyOf } from './dirichlet.ts'
import { studentT } from './student-t.ts'

/** The interval of a mean. An end is infinite if it is unbounded; JSON has null for that. */
export interface Interval {
  readonly low: number
  readonly high: number
}

export type Range = readonly [min: number, max: number]

/** Rewards that are sums of weighted parts, such as .7 + .2 + .1, have rounding errors. */
export const ROUNDING = 1e-9
export const DEFAULT_CONFIDENCE = 0.95
/** Below one half, an interval need not contain its own estimate. */
const MIN_CONFIDENCE = 0.5
const MAX_CONFIDENCE = 0.9999

export function checkConfidence(confidence: number = DEFAULT_CONFIDENCE): number {
  if (confidence >= MIN_CONFIDENCE && confidence <= MAX_CONFIDENCE) return confidence
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`confidence\` must be a number from ${MIN_CONFIDENCE} to ${MAX_CONFIDENCE}, such as 0.95, it is ${confidence}`,
  )
}

/**
 * An interval for the mean of a population, from independent samples that lie within `range`: Gaffke's bounds. It makes no
 * other assumption about the population and never has zero width.
 *
 * The lower end is a quantile of the mean under random weights, after adding one value at the bottom of the range: what was not
 * seen may be the worst possible. The upper end mirrors it. For values of 0 or 1 this is the exact Clopper-Pearson interval; for
 * differences of such values it detects a difference exactly when McNemar's exact test does. See docs/decisions/0020-intervals.md.
 */
export function boundedInterval(values: readonly number[], [min, max]: Range, confidence: number): Interval {
  const p = (1 - confidence) / 2
  const mean = meanOf(values)
  const scaled = values.map((value) => Math.min(1, Math.max(0, (value - min) / (max - min))))
  const low = min + (max - min) * quantile(withOne(scaled, 0), p)
  const flipped = scaled.map((value) => 1 - value)
  const high = max - (max - min) * quantile(withOne(flipped, 0), p)
  // Rounding could move an end past the mean.
  return { low: Math.min(low, mean), high: Math.max(high, mean) }
}

const withOne = (values: readonly number[], extra: number): Tally => tallyOf([...values, extra])

/** Student's interval, for values without a known range. Correct only if the mean is approximately normally distributed. */
export function studentInterval(values: readonly number[], confidence: number): Interval {
  const n = values.length
  const mean = meanOf(values)
  let squares = 0
  for (const value of values) squares += (value - mean) ** 2
  // One value, or equal values, say nothing about the spread.
  if (n < 2 || squares === 0) return { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY }
  const half = studentT(confidence, n - 1) * Math.sqrt(squares / (n - 1) / n)
  return { low: mean - half, high: mean + half }
}

export function meanOf(values: readonly number[]): number {
  let sum = 0
  for (const value of values) sum += value
  return sum / values.length
}
