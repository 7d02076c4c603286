import { checkLength, checkNumbers } from './check-numbers.ts'
import { type Importance, importanceOf, type SampleLogProbs } from './importance.ts'
import type { LossRule } from './loss-settings.ts'
import { addSample, type LossTally, newTally } from './loss-tally.ts'

export interface Sample extends SampleLogProbs {
  readonly advantage: number
}

export interface SampleLoss extends Importance {
  readonly loss: number
  /** The derivative of the loss with respect to `logProb`. */
  readonly byLogProb: number
  /** Whether a bound of the ratio took effect. */
  readonly isClipped: boolean
}

/**
 * The policy loss of one action or token, and its derivative with respect to the log-probability, which a core
 * multiplies by the derivative of the log-probability. Not multiplied by the row's weight.
 */
export function sampleLoss(given: Sample, rule: LossRule): SampleLoss {
  const sample = asSampled(given, rule)
  const { logProb, advantage } = sample
  const { ratio, staleness, correction, isCapped, importance } = importanceOf(sample, rule.maxWeight)
  let loss: number
  let byLogProb: number
  let isClipped = false
  switch (rule.name) {
    case 'sft':
      byLogProb = -1
      loss = -logProb
      break
    case 'reinforce':
      byLogProb = -correction * advantage
      loss = byLogProb * logProb
      break
    case 'is':
      byLogProb = loss = -importance * advantage
      break
    case 'cispo': {
      // The clipped ratio is a constant weight, so unlike with `clip`, every sample keeps a gradient.
      const clipped = Math.min(Math.max(ratio, rule.minRatio), rule.maxRatio)
      isClipped = clipped !== ratio
      byLogProb = -correction * clipped * advantage
      loss = byLogProb * logProb
      break
    }
    case 'clip': {
      const bound = boundOf(ratio, advantage, rule)
      isClipped = bound !== undefined
      loss = -advantage * (bound === undefined ? importance : correction * bound)
      byLogProb = isClipped ? 0 : loss
    }
  }
  // One literal instead of a spread, which takes microseconds; this runs for every token.
  return { loss, byLogProb, isClipped, ratio, staleness, correction, isCapped, importance }
}

/** `sft` imitates samples of any policy: treat them as samples of the current one. */
export const asSampled = <Known extends SampleLogProbs>(sample: Known, { name }: LossRule): Known =>
  name === 'sft' ? { ...sample, behavior: sample.logProb, proximal: sample.logProb } : sample

/**
 * The bound that replaces the ratio, if any: either the policy has already moved far enough in the direction of the
 * advantage or, with the dual clip, a bad action that became much more probable would outweigh all others.
 */
function boundOf(ratio: number, advantage: number, { minRatio, maxRatio, dualClip }: LossRule): number | undefined {
  if (advantage === 0) return undefined
  if (advantage > 0) return ratio > maxRatio ? maxRatio : undefined
  if (ratio < minRatio) return minRatio
  return ratio > dualClip ? dualClip : undefined
}

/** Actions or tokens; each array has one number per sample. */
export interface Samples {
  readonly logProbs: ArrayLike<number>
  readonly behavior: ArrayLike<number>
  readonly proximal?: ArrayLike<number> | undefined
  readonly advantages: ArrayLike<number>
  /** The weight of each sample in the loss. Where it is 0, such as for prompt tokens, the other numbers are ignored. */
  readonly weights: ArrayLike<number>
}

export interface PolicyLoss {
  /** The sum of weight times loss. */
  readonly loss: number
  /** Its derivative with respect to each log-probability. */
  readonly byLogProb: Float64Array
}

/**
 * The policy loss of many samples, in order. Statistics are added to `tally`; `lossMetrics` turns them into metrics.
 */
export function policyLoss(samples: Samples, rule: LossRule, tally: LossTally = newTally()): PolicyLoss {
  const { logProbs, behavior, proximal, advantages, weights } = samples
  checkNumbers('weights', weights, logProbs.length)
  checkLength('behavior', behavior, logProbs.length)
  if (proximal) checkLength('proximal', proximal, logProbs.length)
  checkLength('advantages', advantages, logProbs.length)
  const byLogProb = new Float64Array(logProbs.length)
  let loss = 0
  for (let i = 0; i < logProbs.length; i++) {
    const weight = weights[i]!
    if (weight === 0) continue
    const given = {
      logProb: logProbs[i]!,
      behavior: behavior[i]!,
      proximal: proximal?.[i],
      advantage: advantages[i]!,
    }
    const sample = asSampled(given, rule)
    const result = sampleLoss(sample, rule)
    loss += weight * result.loss
    byLogProb[i] = weight * result.byLogProb
    addSample(tally, sample, result, weight)
  }
  return { loss, byLogProb }
}
