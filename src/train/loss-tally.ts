import { exp, expm1 } from './exact-math.ts'
import type { SampleLogProbs } from './importance.ts'
import type { SampleLoss } from './losses.ts'

/**
 * Sums over the samples of an update. One tally is passed through all micro-batches in order, so the figures are
 * bit-identical for any split.
 */
export interface LossTally {
  samples: number
  loss: number
  ratio: number
  largestRatio: number
  clipped: number
  capped: number
  largestWeight: number
  importance: number
  squaredImportance: number
  kl: number
}

export const newTally = (): LossTally => ({
  samples: 0,
  loss: 0,
  ratio: 0,
  largestRatio: 0,
  clipped: 0,
  capped: 0,
  largestWeight: 0,
  importance: 0,
  squaredImportance: 0,
  kl: 0,
})

export function addSample(
  tally: LossTally,
  { logProb, behavior }: SampleLogProbs,
  { loss, ratio, staleness, isClipped, isCapped }: SampleLoss,
  weight: number,
): void {
  // Uncapped, because the purpose is to show what the cap hides.
  const moved = logProb - behavior
  const importance = exp(moved)
  tally.samples++
  tally.loss += weight * loss
  tally.ratio += ratio
  tally.largestRatio = Math.max(tally.largestRatio, ratio)
  tally.clipped += isClipped ? 1 : 0
  tally.capped += isCapped ? 1 : 0
  tally.largestWeight = Math.max(tally.largestWeight, staleness)
  tally.importance += importance
  tally.squaredImportance += importance * importance
  tally.kl += expm1(moved) - moved
}

/**
 * Metrics of the policy loss. Each sample counts once, whatever its weight; only `loss` is weighted. Without samples,
 * means are omitted.
 */
export function lossMetrics(tally: Readonly<LossTally>): Readonly<Record<string, number>> {
  const { samples, loss } = tally
  if (samples === 0) return { samples, loss }
  return {
    samples,
    loss,
    // p / proximal.
    ratio: tally.ratio / samples,
    largestRatio: tally.largestRatio,
    // Fraction of samples at a bound of the ratio.
    clipFraction: tally.clipped / samples,
    // Fraction of samples whose proximal / behavior exceeded `maxWeight`, and the largest value before the cap.
    cappedShare: tally.capped / samples,
    largestWeight: tally.largestWeight,
    // Kish's effective sample size, as a fraction of the samples: how many on-policy samples have the same information.
    effectiveSampleShare:
      tally.squaredImportance > 0 ? (tally.importance * tally.importance) / (tally.squaredImportance * samples) : 0,
    // KL(behavior ‖ p), estimated by k3 from samples of `behavior`.
    klFromBehavior: tally.kl / samples,
  }
}
