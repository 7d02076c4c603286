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

/** A figure over tasks, with the interval in which the figure of all tasks of their kind lies with the given confidence. */
export interface Estimate extends Interval {
  /** The mean over tasks; for each task the mean over its rollouts. */
  readonly value: number
  readonly confidence: number
  /** Tasks and rollouts that it is made of. */
  readonly tasks: number
  readonly rollouts: number
  /** Why the interval says less than it seems to; missing if there is nothing to say. */
  readonly warning?: string
}

export interface EstimateOptions {
  /** 0.95 unless told otherwise. */
  readonly confidence?: number
}

export interface RewardOptions extends EstimateOptions {
  /** What rewards can be. Left out: 0 to 1, if all of them are. */
  readonly rewardRange?: Range
}

/** The rollouts of each task; null: no result, which is left out. Tasks are the population, not rollouts. */
export type TaskRollouts<Value> = Iterable<readonly (Value | null)[]>

const UNIT: Range = [0, 1]

/** The share of rollouts that succeed. Null if there is none. */
export function successRate(tasks: TaskRollouts<boolean>, options: EstimateOptions = {}): Estimate | null {
  const { means, rollouts } = taskMeans(tasks)
  return estimate(means, rollouts, UNIT, options)
}

/** The mean reward. Null if there is none. */
export function meanReward(tasks: TaskRollouts<number>, options: RewardOptions = {}): Estimate | null {
  const range = checkRange(options.rewardRange)
  const { means, rollouts, min, max } = taskMeans(tasks)
  const [warning, known] = rangeOf(min, max, range)
  return estimate(means, rollouts, known, options, warning)
}

/** The chance that at least one of `k` rollouts of a task succeeds (unbiased). Tasks with fewer than `k` rollouts are left out. */
export function passRate(tasks: TaskRollouts<boolean>, k: number, options: EstimateOptions = {}): Estimate | null {
  if (!Number.isInteger(k) || k < 1)
    throw new ManyworldsError('CONFIG_INVALID', `\`k\` of pass@k must be a whole number of at least 1; it is ${k}`)
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

/** Undefined range: not known. */
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
  const single = means.length === 1 ? 'one task says next to nothing about others' : undefined
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
  /** Of single rollouts. */
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
        throw new ManyworldsError('CONFIG_INVALID', `a reward must be a finite number or null; it is ${value}`)
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

/** The range in which rewards lie, or why none can be relied on. */
export function rangeOf(min: number, max: number, given?: Range): [warning: string | undefined, range?: Range] {
  const [low, high] = given ?? UNIT
  // Sums of weighted parts may be beyond by a rounding error.
  const slack = ROUNDING * (high - low)
  if (min >= low - slack && max <= high + slack) return [undefined, [low, high]]
  const outside = `rewards from ${short(min)} to ${short(max)} lie outside ${given ? `the given range ${low} to ${high}` : '0 to 1'}`
  const equal = min === max ? ', and all are equal, so that nothing bounds it' : ''
  return [
    `${outside}, so the interval is Student's, which rare extreme rewards escape${equal}; give \`rewardRange\` for one that holds`,
  ]
}

const short = (value: number) => String(Number(value.toPrecision(4)))

export function checkRange(range?: Range): Range | undefined {
  if (range === undefined) return undefined
  const [min, max] = range
  if (Number.isFinite(min) && Number.isFinite(max) && min < max) return range
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`rewardRange\` must be two numbers, the smaller one first, such as [-1, 1]; it is [${range.join(', ')}]`,
  )
}
