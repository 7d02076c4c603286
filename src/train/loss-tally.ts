import { exp, expm1 } from './exact-math.ts'
import type { SampleLogProbs } from './importance.ts'
import type { SampleLoss } from './losses.ts'

/**
 * Sums over the samples of an update. One tally goes through all of its micro-batches, in their order: then the figures are the same, to
 * the last bit, wherever it was cut.
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
  { logProb, behaviour }: SampleLogProbs,
  { loss, ratio, staleness, isClipped, isCapped }: SampleLoss,
  weight: number,
): void {
  // Not the capped one: what the cap hides is what one wants to see.
  const moved = logProb - behaviour
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
 * Figures of the policy loss. Each sample counts once, whatever its weight; only `loss` is weighted. Without samples there are no
 * means, and they are left out.
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
    // Samples at a bound of the ratio.
    clipFraction: tally.clipped / samples,
    // Samples whose proximal / behaviour was above `maxWeight`, and the largest before the cap.
    cappedShare: tally.capped / samples,
    largestWeight: tally.largestWeight,
    // Kish: as many samples of the policy itself would tell as much about it.
    effectiveSampleSize:
      tally.squaredImportance > 0 ? (tally.importance * tally.importance) / tally.squaredImportance : 0,
    // KL(behaviour ‖ p), by k3 with samples of `behaviour`.
    klFromBehaviour: tally.kl / samples,
  }
}
