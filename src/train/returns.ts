import { checkBetween, checkFinite, checkNumbers, checkRewards } from './check-numbers.ts'

/**
 * The discounted return of each step: `G[t] = r[t] + discount · G[t+1]`. `last` is the value of the state after the
 * last step: 0 if the episode terminated, an estimate if it was truncated.
 */
export function returns(rewards: ArrayLike<number>, discount: number, last = 0): Float64Array {
  checkRewards('rewards', rewards)
  checkBetween('discount', discount, 0, 1)
  checkFinite('last', last)
  const result = new Float64Array(rewards.length)
  let next = last
  for (let t = rewards.length - 1; t >= 0; t--) result[t] = next = rewards[t]! + discount * next
  return result
}

export interface GaeSettings {
  readonly discount: number
  /** 0: one step plus the next value (less variance). 1: the whole return (less bias). */
  readonly lambda: number
  /** 1 where a token was sampled. Other tokens are skipped, and their rewards are ignored; see `moveRewards`. */
  readonly mask?: ArrayLike<number>
  /** The value of the state after the last step, for a truncated episode. Default 0: the episode terminated. */
  readonly last?: number
}

export interface Gae {
  /** 0 where the mask is 0. */
  readonly advantages: Float64Array
  /** Advantage plus value: the training target of a value function. 0 where the mask is 0. */
  readonly returns: Float64Array
}

/** Generalized advantage estimation (Schulman et al., 2016) of one episode: `A[t] = δ[t] + discount · lambda · A[t+1]`. */
export function gae(rewards: ArrayLike<number>, values: ArrayLike<number>, settings: GaeSettings): Gae {
  const { discount, lambda, mask, last = 0 } = settings
  const length = rewards.length
  checkRewards('rewards', rewards)
  checkNumbers('values', values, length)
  if (mask) checkNumbers('mask', mask, length)
  checkFinite('last', last)
  checkBetween('discount', discount, 0, 1)
  checkBetween('lambda', lambda, 0, 1)
  const advantages = new Float64Array(length)
  const targets = new Float64Array(length)
  let nextValue = last
  let nextAdvantage = 0
  for (let t = length - 1; t >= 0; t--) {
    if (mask && mask[t] !== 1) continue
    const delta = rewards[t]! + discount * nextValue - values[t]!
    nextAdvantage = delta + discount * lambda * nextAdvantage
    nextValue = values[t]!
    advantages[t] = nextAdvantage
    targets[t] = nextAdvantage + nextValue
  }
  return { advantages, returns: targets }
}
