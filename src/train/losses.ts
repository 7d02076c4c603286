import { checkLength, checkNumbers } from './check-numbers.ts'
import { type Importance, importanceOf, type SampleLogProbs } from './importance.ts'
import type { LossRule } from './loss-settings.ts'
import { addSample, type LossTally, newTally } from './loss-tally.ts'

export interface Sample extends SampleLogProbs {
  readonly advantage: number
}

export interface SampleLoss extends Importance {
  readonly loss: number
  /** The derivative of the loss by `logProb`. */
  readonly byLogProb: number
  /** A bound of the ratio took effect. */
  readonly isClipped: boolean
}

/**
 * The policy loss of one action or token, and its derivative, so that a core needs the derivative of the log-probability only.
 * The weight of the row is not in it.
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
      // The clipped ratio is a constant weight: unlike with `clip`, every sample keeps a gradient.
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
  // One literal instead of a spread, which takes microseconds: this runs for every token.
  return { loss, byLogProb, isClipped, ratio, staleness, correction, isCapped, importance }
}

/** `sft` imitates, whoever acted: its samples count as those of the policy itself. */
export const asSampled = <Known extends SampleLogProbs>(sample: Known, { name }: LossRule): Known =>
  name === 'sft' ? { ...sample, behaviour: sample.logProb, proximal: sample.logProb } : sample

/**
 * The bound that stands in for the ratio, if one does: where the policy has already moved far enough in the direction that the advantage
 * asks for and, by the dual clip, where a bad action that became much more probable would outweigh all others.
 */
function boundOf(ratio: number, advantage: number, { minRatio, maxRatio, dualClip }: LossRule): number | undefined {
  if (advantage === 0) return undefined
  if (advantage > 0) return ratio > maxRatio ? maxRatio : undefined
  if (ratio < minRatio) return minRatio
  return ratio > dualClip ? dualClip : undefined
}

/** Actions or tokens, one number for each in every array. */
export interface Samples {
  readonly logProbs: ArrayLike<number>
  readonly behaviour: ArrayLike<number>
  readonly proximal?: ArrayLike<number> | undefined
  readonly advantages: ArrayLike<number>
  /** Of each sample in the loss. Where it is 0, such as on tokens that were not sampled, the other numbers are not looked at. */
  readonly weights: ArrayLike<number>
}

export interface PolicyLoss {
  /** The sum of weight times loss. */
  readonly loss: number
  /** Its derivative by each log-probability. */
  readonly byLogProb: Float64Array
}

/** The policy loss of many samples, in their order. What it notices is added to `tally`; `lossMetrics` makes figures of that. */
export function policyLoss(samples: Samples, rule: LossRule, tally: LossTally = newTally()): PolicyLoss {
  const { logProbs, behaviour, proximal, advantages, weights } = samples
  checkNumbers('weights', weights, logProbs.length)
  checkLength('behaviour', behaviour, logProbs.length)
  if (proximal) checkLength('proximal', proximal, logProbs.length)
  checkLength('advantages', advantages, logProbs.length)
  const byLogProb = new Float64Array(logProbs.length)
  let loss = 0
  for (let i = 0; i < logProbs.length; i++) {
    const weight = weights[i]!
    if (weight === 0) continue
    const given = {
      logProb: logProbs[i]!,
      behaviour: behaviour[i]!,
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
