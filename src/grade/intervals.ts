import { ManyworldsError } from '../errors.ts'
import { counted } from '../text/quantities.ts'
import {
  boundedInterval,
  checkConfidence,
  type Interval,
  meanOf,
  type Range,
  ROUNDING,
  studentInterval,
} from './mean-interval.ts'
import { passAtK } from './pass-at-k.ts'

/** A figure over tasks, with an interval that contains the figure of the whole population with the given confidence. */
export interface Estimate extends Interval {
  /** The mean over tasks of the mean over each task's rollouts. */
  readonly value: number
  readonly confidence: number
  /** The number of tasks and rollouts that it is based on. */
  readonly tasks: number
  readonly rollouts: number
  /** Set if the interval is less reliable than it seems: the reason. */
  readonly warning?: string
}

export interface EstimateOptions {
  /** Default 0.95. */
  readonly confidence?: number
}

export interface RewardOptions extends EstimateOptions {
  /** The range of possible rewards. Default: 0 to 1, if all rewards are in it. */
  readonly rewardRange?: Range
}

/** The rollouts of each task; null: no result, which is left out. The population is tasks, not rollouts. */
export type TaskRollouts<Value> = Iterable<readonly (Value | null)[]>

const UNIT: Range = [0, 1]

/** The share of rollouts that succeed. Null if there are none. */
export function successRate(tasks: TaskRollouts<boolean>, options: EstimateOptions = {}): Estimate | null {
  const { means, rollouts } = taskMeans(tasks)
  return estimate(means, rollouts, UNIT, options)
}

/** At least this share of all such tasks is solved, with the given confidence: a one-sided bound. Null if there are no rollouts. */
export function successAtLeast(tasks: TaskRollouts<boolean>, options: EstimateOptions = {}): number | null {
  const { means } = taskMeans(tasks)
  // An interval with two ends that both may be wrong: each of them is wrong half as often.
  const twoSided = 2 * checkConfidence(options.confidence) - 1
  return means.length === 0 ? null : boundedInterval(means, UNIT, twoSided).low
}

/** The mean reward. Null if there are no rewards. */
export function meanReward(tasks: TaskRollouts<number>, options: RewardOptions = {}): Estimate | null {
  const range = checkRange(options.rewardRange)
  const { means, rollouts, min, max } = taskMeans(tasks)
  const [warning, known] = rangeOf(min, max, range)
  return estimate(means, rollouts, known, options, warning)
}

/** The chance that at least one of `k` rollouts of a task succeeds (unbiased). Tasks with fewer than `k` rollouts are left out. */
export function passRate(tasks: TaskRollouts<boolean>, k: number, options: EstimateOptions = {}): Estimate | null {
  if (!Number.isInteger(k) || k < 1)
    throw new ManyworldsError('CONFIG_INVALID', `\`k\` of pass@k must be a whole number of at least 1, it is ${k}`)
  const values: number[] = []
  let [rollouts, tooFew] = [0, 0]
  for (const results of tasks) {
    let [n, c] = [0, 0]
    for (const result of results) {
      if (result === null) continue
      n++
      if (result) c++
    }
    if (n >= k) {
      values.push(passAtK(n, c, k))
      rollouts += n
    } else if (n > 0) tooFew++
  }
  const verb = tooFew === 1 ? 'has' : 'have'
  const warning = `${counted(tooFew, 'task')} ${verb} fewer than ${counted(k, 'rollout')} with a result and ${tooFew === 1 ? 'is' : 'are'} left out of pass@${k}`
  return estimate(values, rollouts, UNIT, options, tooFew > 0 ? warning : undefined)
}

/** `range`: undefined if unknown. */
export function estimate(
  means: readonly number[],
  rollouts: number,
  range: Range | undefined,
  options: EstimateOptions,
  warning?: string,
): Estimate | null {
  const confidence = checkConfidence(options.confidence)
  if (means.length === 0) return null
  const interval = range ? boundedInterval(means, range, confidence) : studentInterval(means, confidence)
  const single = means.length === 1 ? 'one task says almost nothing about other tasks' : undefined
  const warnings = [warning, single].filter((text) => text !== undefined)
  return {
    value: meanOf(means),
    ...interval,
    confidence,
    tasks: means.length,
    rollouts,
    ...(warnings.length > 0 ? { warning: warnings.join('; ') } : {}),
  }
}

interface TaskMeans {
  readonly means: readonly number[]
  readonly rollouts: number
  /** Over single rollouts. */
  readonly min: number
  readonly max: number
}

function taskMeans(tasks: TaskRollouts<number | boolean>): TaskMeans {
  const means: number[] = []
  let [rollouts, min, max] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const results of tasks) {
    let [n, sum] = [0, 0]
    for (const result of results) {
      if (result === null) continue
      const value = Number(result)
      if (!Number.isFinite(value))
        throw new ManyworldsError('CONFIG_INVALID', `a reward must be a finite number or null, it is ${value}`)
      if (value < min) min = value
      if (value > max) max = value
      sum += value
      n++
    }
    if (n === 0) continue
    means.push(sum / n)
    rollouts += n
  }
  return { means, rollouts, min, max }
}

/** The range of rewards, or a warning if none is reliable. */
export function rangeOf(min: number, max: number, given?: Range): [warning: string | undefined, range?: Range] {
  const [low, high] = given ?? UNIT
  // Sums of weighted parts may exceed the range by a rounding error.
  const slack = ROUNDING * (high - low)
  if (min >= low - slack && max <= high + slack) return [undefined, [low, high]]
  const outside = `rewards from ${short(min)} to ${short(max)} are outside ${given ? `the given range ${low} to ${high}` : '0 to 1'}`
  const equal = min === max ? ' and is unbounded because all rewards are equal' : ''
  return [
    `${outside}, so the interval is Student's, which ignores rare extreme rewards${equal}; give \`rewardRange\` for a reliable one`,
  ]
}

const short = (value: number) => String(Number(value.toPrecision(4)))

export function checkRange(range?: Range): Range | undefined {
  if (range === undefined) return undefined
  const [min, max] = range
  if (Number.isFinite(min) && Number.isFinite(max) && min < max) return range
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`rewardRange\` must be two numbers, the smaller one first, such as [-1, 1], it is [${range.join(', ')}]`,
  )
}
