import { checkBetween, checkFinite, checkNumbers, checkRewards } from './check-numbers.ts'
import { moments } from './moments.ts'

/** Of the scale of the rewards: sums of weighted parts, such as .7 + .2 + .1, miss each other by less. */
const ROUNDING = 1e-12
const DEFAULT_EPS = 1e-6
const NORMALIZE_EPS = 1e-8

export interface GroupAdvantages {
  /** One array for each group, one number for each of its rewards. */
  readonly advantages: readonly Float64Array[]
  /** Indexes of groups of two or more whose rewards are all the same. Their advantages are 0: they teach nothing, skip them. */
  readonly flat: readonly number[]
  /** Indexes of groups of one, which have nothing to be compared with. Their advantages are 0 as well. */
  readonly single: readonly number[]
}

/** REINFORCE leave-one-out: each reward less the mean of the others in its group. */
export function rloo(groups: readonly ArrayLike<number>[]): GroupAdvantages {
  return byGroup(groups, (rewards) => {
    const { mean } = moments(rewards)
    // The mean of the others is further from the reward than the mean of all, by n / (n - 1).
    const scale = rewards.length / (rewards.length - 1)
    return Float64Array.from(rewards, (reward) => (reward - mean) * scale)
  })
}

export interface GrpoSettings {
  /** Divide by the standard deviation (with n - 1) of the group. `false` is Dr. GRPO. Default true. */
  readonly std?: boolean
  /** Added to the standard deviation. Default 1e-6. */
  readonly eps?: number
}

/** Group-relative advantages: each reward less the mean of its group, over the standard deviation. */
export function grpo(groups: readonly ArrayLike<number>[], settings: GrpoSettings = {}): GroupAdvantages {
  const { std = true, eps = DEFAULT_EPS } = settings
  checkBetween('eps', eps, 0, Number.POSITIVE_INFINITY)
  return byGroup(groups, (rewards) => {
    const { mean, squares } = moments(rewards)
    const divisor = std ? Math.sqrt(squares / (rewards.length - 1)) + eps : 1
    return Float64Array.from(rewards, (reward) => (reward - mean) / divisor)
  })
}

function byGroup(
  groups: readonly ArrayLike<number>[],
  compare: (rewards: ArrayLike<number>) => Float64Array,
): GroupAdvantages {
  const flat: number[] = []
  const single: number[] = []
  const advantages = groups.map((rewards, index) => {
    checkRewards(`rewards of group ${index}`, rewards)
    if (rewards.length > 1 && !isFlat(rewards)) return compare(rewards)
    if (rewards.length === 1) single.push(index)
    else if (rewards.length > 1) flat.push(index)
    return new Float64Array(rewards.length)
  })
  return { advantages, flat, single }
}

/** By the rewards, not by their deviation: the mean of three times .1 is not .1, and a small deviation would be divided by itself. */
function isFlat(rewards: ArrayLike<number>): boolean {
  let min = rewards[0]!
  let max = min
  for (let i = 1; i < rewards.length; i++) {
    min = Math.min(min, rewards[i]!)
    max = Math.max(max, rewards[i]!)
  }
  return max - min <= ROUNDING * Math.max(Math.abs(min), Math.abs(max))
}

/**
 * Returns less a baseline: one for all, or one for each, such as the values of their states. A baseline that does not depend on the
 * actions it is subtracted from leaves the expected gradient as it is.
 */
export function minusBaseline(returns: ArrayLike<number>, baseline: number | ArrayLike<number>): Float64Array {
  checkNumbers('returns', returns)
  if (typeof baseline === 'number') checkFinite('baseline', baseline)
  else checkNumbers('baseline', baseline, returns.length)
  return Float64Array.from(returns, (value, i) => value - (typeof baseline === 'number' ? baseline : baseline[i]!))
}

/** The mean of the batch itself as the baseline. It scales the expected gradient by (n - 1) / n. A batch of one gives 0. */
export function minusBatchMean(returns: ArrayLike<number>): Float64Array {
  return returns.length === 0 ? new Float64Array(0) : minusBaseline(returns, moments(returns).mean)
}

/** Less their mean, over their standard deviation (with n). Numbers that are all the same give 0. */
export function normalized(advantages: ArrayLike<number>): Float64Array {
  checkNumbers('advantages', advantages)
  if (advantages.length === 0 || isFlat(advantages)) return new Float64Array(advantages.length)
  const { mean, squares } = moments(advantages)
  const divisor = Math.sqrt(squares / advantages.length) + NORMALIZE_EPS
  return Float64Array.from(advantages, (value) => (value - mean) / divisor)
}

/** A mean over all batches so far. Plain data, so that a checkpoint can hold it. */
export interface RunningMean {
  readonly mean: number
  /** How many returns the mean stands for. */
  readonly weight: number
}

/**
 * The running mean after a batch. Subtract the one from before the batch: then no return is in its own baseline. With `decay` below 1,
 * each return makes those before it count so much less.
 */
export function nextRunningMean(
  { mean, weight }: RunningMean = { mean: 0, weight: 0 },
  returns: ArrayLike<number>,
  decay = 1,
): RunningMean {
  checkNumbers('returns', returns)
  checkBetween('decay', decay, 0, 1)
  for (let i = 0; i < returns.length; i++) {
    weight = decay * weight + 1
    mean += (returns[i]! - mean) / weight
  }
  return { mean, weight }
}
