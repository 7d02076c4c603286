import { sampledKl } from '../../dist/train/divergence.js'
import { type LossSettings, lossRule } from '../../dist/train/loss-settings.js'
import { policyLoss } from '../../dist/train/losses.js'

type Grid = readonly (readonly number[])[]

/** The same numbers for both: settings of TRL's `GRPOConfig`, and settings of ours that mean the same. */
export interface LossCase {
  readonly name: string
  readonly ours: LossSettings
  readonly config: Readonly<Record<string, unknown>>
  /** What each token weighs in the loss, if it counts; TRL calls it the loss type. */
  readonly weight: (row: readonly number[], mask: Grid) => number
  /** False: TRL has the same derivative for another value, or the same value only. */
  readonly sameValue?: false
  readonly sameDerivative?: false
  readonly logProbs: Grid
  /** Of the learner when the update began: `proximal`. Null: on-policy. */
  readonly old: Grid | null
  /** Of the sampler: `behavior`. Null: `old`. */
  readonly sampling: Grid | null
  readonly reference: Grid | null
  readonly mask: Grid
  readonly advantages: readonly number[]
  /** The most that old / sampling may weigh. */
  readonly cap: number
}

const ROWS = 4
const TOKENS = 8
const LONGEST = 16

/** Always the same numbers: `Math.sin` of large numbers has no pattern that matters here. */
const noise = (seed: number, size: number): Grid =>
  Array.from({ length: ROWS }, (_, row) =>
    Array.from({ length: TOKENS }, (_, at) => size * Math.sin(seed + 1000 * Math.sin(row * TOKENS + at + seed))),
  )
const plus = (one: Grid, other: Grid): Grid => one.map((row, at) => row.map((value, i) => value + other[at]![i]!))
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

const logProbs: Grid = noise(1, 1).map((row) => row.map((value) => value - 2))
/** Ratios between a sixth and six: every bound is met. */
const old = plus(logProbs, noise(2, 1.8))
const sampling = plus(old, noise(3, 1))
const reference = plus(logProbs, noise(4, 1))
/** Tools spoke in between; the last row is shorter. */
const mask: Grid = [
  [1, 1, 0, 0, 1, 1, 1, 1],
  [1, 1, 1, 1, 1, 1, 1, 1],
  [1, 0, 1, 0, 1, 0, 1, 0],
  [1, 1, 1, 0, 0, 0, 0, 0],
]
const advantages = [1.3, -0.7, 0.4, -1.9]

const ofTokens = (_: readonly number[], all: Grid) => 1 / sum(all.map(sum))
const ofSequences = (row: readonly number[]) => 1 / (ROWS * sum(row))
const ofLongest = () => 1 / (ROWS * LONGEST)

const numbers = { logProbs, old, sampling: null, reference: null, mask, advantages, cap: 2, weight: ofTokens }
const dapo = { loss_type: 'dapo', epsilon: 0.2, epsilon_high: 0.2 }
const unbounded = { epsilon: 1, epsilon_high: 1e9 }

export const LOSS_CASES: readonly LossCase[] = [
  { ...numbers, name: 'clip, by tokens of the batch', ours: { name: 'clip' }, config: dapo },
  {
    ...{ ...numbers, name: 'clip, by tokens of the micro-batch, one bound wider' },
    ...{ ours: { name: 'clip', clipHigh: 0.28 }, config: { ...dapo, loss_type: 'bnpo', epsilon_high: 0.28 } },
  },
  {
    ...{ ...numbers, name: 'clip, by sequences', weight: ofSequences },
    ...{ ours: { name: 'clip' }, config: { ...dapo, loss_type: 'grpo' } },
  },
  {
    ...{ ...numbers, name: 'clip, by a constant (Dr. GRPO)', weight: ofLongest },
    ...{ ours: { name: 'clip' }, config: { ...dapo, loss_type: 'dr_grpo', max_completion_length: LONGEST } },
  },
  {
    ...{ ...numbers, name: 'dual clip' },
    ...{ ours: { name: 'clip', dualClip: 3 }, config: { ...dapo, delta: 3 } },
  },
  {
    ...{ ...numbers, name: 'clip, corrected for a sampler that was behind', sampling },
    ...{ ours: { name: 'clip', maxWeight: 2 }, config: dapo },
  },
  { ...numbers, name: 'is', ours: { name: 'is' }, config: { ...dapo, ...unbounded } },
  {
    ...{ ...numbers, name: 'is, corrected', sampling },
    ...{ ours: { name: 'is', maxWeight: 2 }, config: { ...dapo, ...unbounded } },
  },
  {
    ...{ ...numbers, name: 'cispo' },
    // TRL's bound is that of the ratio itself, not its distance from 1.
    ...{ ours: { name: 'cispo', clipHigh: 1.5 }, config: { loss_type: 'cispo', epsilon_high: 2.5 } },
  },
  {
    ...{ ...numbers, name: 'cispo, corrected', sampling },
    ...{ ours: { name: 'cispo', clipHigh: 1.5 }, config: { loss_type: 'cispo', epsilon_high: 2.5 } },
  },
  {
    ...{ ...numbers, name: 'reinforce, which on-policy is what cispo is', old: null },
    ...{ ours: { name: 'reinforce' }, config: { loss_type: 'cispo', epsilon_high: 5 } },
  },
  {
    ...{ ...numbers, name: 'reinforce, whose derivative on-policy is that of clip', old: null, sameValue: false },
    ...{ ours: { name: 'reinforce' }, config: dapo },
  },
  {
    ...{ ...numbers, name: 'KL, weighted by the ratio', reference },
    ...{ ours: { name: 'clip', kl: 0.04 }, config: { ...dapo, beta: 0.04, use_bias_correction_kl: true } },
  },
  {
    ...{ ...numbers, name: 'KL, whose value on-policy needs no weight', old: null, reference, sameDerivative: false },
    ...{ ours: { name: 'clip', kl: 0.04 }, config: { ...dapo, beta: 0.04, use_bias_correction_kl: false } },
  },
]

/** What we make of a case. */
export function ourLoss(one: LossCase): { readonly loss: number; readonly byLogProb: readonly (readonly number[])[] } {
  const rule = lossRule(one.ours)
  const old = one.old ?? one.logProbs
  const behavior = one.sampling ?? old
  let loss = 0
  const byLogProb = one.mask.map((mask, row) => {
    const weights = mask.map((counts) => counts * one.weight(mask, one.mask))
    const samples = {
      ...{ logProbs: one.logProbs[row]!, proximal: old[row]!, behavior: behavior[row]! },
      ...{ advantages: mask.map(() => one.advantages[row]!), weights },
    }
    const policy = policyLoss(samples, rule)
    loss += policy.loss
    return Array.from(policy.byLogProb, (derivative, at) => {
      if (one.reference === null || weights[at] === 0) return derivative
      const [logProb, proximal] = [one.logProbs[row]![at]!, old[row]![at]!]
      const kl = sampledKl({ logProb, proximal, behavior: proximal, reference: one.reference[row]![at]! })
      loss += rule.kl * weights[at]! * kl.value
      return derivative + rule.kl * weights[at]! * kl.byLogProb
    })
  })
  return { loss, byLogProb }
}
