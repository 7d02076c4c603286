import { checkBetween, checkFinite, checkNumbers, checkRewards } from './check-numbers.ts'
import { moments } from './moments.ts'

/** Relative to the largest reward. Rounding errors of weighted sums such as .7 + .2 + .1 are smaller. */
const ROUNDING = 1e-12
const DEFAULT_EPS = 1e-6
const NORMALIZE_EPS = 1e-8

export interface GroupAdvantages {
  /** One array per group, with one number per reward. */
  readonly advantages: readonly Float64Array[]
  /** Indexes of groups of two or more with identical rewards. Their advantages are 0, so they can be skipped. */
  readonly flat: readonly number[]
  /** Indexes of groups of one, which have nothing to be compared with. Their advantages are also 0. */
  readonly single: readonly number[]
}

/** REINFORCE leave-one-out: each reward minus the mean of the other rewards of its group. */
export function rloo(groups: readonly ArrayLike<number>[]): GroupAdvantages {
  return byGroup(groups, (rewards) => {
    const { mean } = moments(rewards)
    // A reward's distance from the mean of the others is n / (n - 1) times its distance from the mean of all.
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

/** Group-relative advantages: each reward minus the mean of its group, divided by the standard deviation. */
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

/**
 * Compares the rewards, not their deviation: because of rounding, the mean of three times .1 is not .1, and dividing
 * that tiny deviation by itself would give an advantage of about 1.
 */
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
 * Returns minus a baseline: one number for all, or one per return, such as the values of the states. A baseline that
 * does not depend on the action does not change the expected gradient.
 */
export function minusBaseline(returns: ArrayLike<number>, baseline: number | ArrayLike<number>): Float64Array {
  checkNumbers('returns', returns)
  if (typeof baseline === 'number') checkFinite('baseline', baseline)
  else checkNumbers('baseline', baseline, returns.length)
  return Float64Array.from(returns, (value, i) => value - (typeof baseline === 'number' ? baseline : baseline[i]!))
}

/** Returns minus their own mean. This scales the expected gradient by (n - 1) / n; a batch of one gives 0. */
export function minusBatchMean(returns: ArrayLike<number>): Float64Array {
  return returns.length === 0 ? new Float64Array(0) : minusBaseline(returns, moments(returns).mean)
}

/** Subtracts the mean and divides by the standard deviation (with n). Identical numbers give 0. */
export function normalized(advantages: ArrayLike<number>): Float64Array {
  checkNumbers('advantages', advantages)
  if (advantages.length === 0 || isFlat(advantages)) return new Float64Array(advantages.length)
  const { mean, squares } = moments(advantages)
  const divisor = Math.sqrt(squares / advantages.length) + NORMALIZE_EPS
  return Float64Array.from(advantages, (value) => (value - mean) / divisor)
}

/** A mean over all batches so far. Plain data, so that it can be stored in a checkpoint. */
export interface RunningMean {
  readonly mean: number
  /** The number of returns in the mean; with `decay`, the sum of their weights. */
  readonly weight: number
}

/**
 * The running mean after a batch. As the baseline of a batch, use the mean from before it, so that no return is part of
 * its own baseline. With `decay` below 1, each return multiplies the weight of all earlier ones by `decay`.
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
