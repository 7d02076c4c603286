import { checkLength } from './check-numbers.ts'
import { exp, expm1, log } from './exact-math.ts'
import { importanceOf, type SampleLogProbs } from './importance.ts'
import type { LossRule } from './loss-settings.ts'

/** Log-probabilities of candidates. A logit of -Infinity excludes a candidate. */
export function logSoftmax(logits: ArrayLike<number>): Float64Array {
  let max = Number.NEGATIVE_INFINITY
  for (let i = 0; i < logits.length; i++) max = Math.max(max, logits[i]!)
  let sum = 0
  for (let i = 0; i < logits.length; i++) sum += exp(logits[i]! - max)
  const logSum = max + log(sum)
  const logProbs = new Float64Array(logits.length)
  for (let i = 0; i < logits.length; i++) logProbs[i] = logits[i]! - logSum
  return logProbs
}

/** The derivative of the log-probability of candidate `index` with respect to each logit. */
export function logProbByLogit(logProbs: ArrayLike<number>, index: number): Float64Array {
  const byLogit = new Float64Array(logProbs.length)
  for (let i = 0; i < logProbs.length; i++) byLogit[i] = (i === index ? 1 : 0) - exp(logProbs[i]!)
  return byLogit
}

/** A value computed from a distribution over candidates, and its derivative with respect to each logit. */
export interface OverCandidates {
  readonly value: number
  readonly byLogit: Float64Array
}

/** The entropy of a distribution, in nats: `-Σ p log p`. */
export function entropy(logProbs: ArrayLike<number>): OverCandidates {
  let value = 0
  for (let i = 0; i < logProbs.length; i++) value -= weighted(logProbs[i]!, logProbs[i]!)
  const byLogit = new Float64Array(logProbs.length)
  for (let i = 0; i < logProbs.length; i++) byLogit[i] = -weighted(logProbs[i]!, logProbs[i]! + value)
  return { value, byLogit }
}

/**
 * KL(p ‖ reference) = `Σ p (log p - log reference)`, exact. Infinite if the reference excludes a candidate that p
 * allows.
 */
export function exactKl(logProbs: ArrayLike<number>, reference: ArrayLike<number>): OverCandidates {
  checkLength('log-probabilities of the reference', reference, logProbs.length)
  let value = 0
  for (let i = 0; i < logProbs.length; i++) value += weighted(logProbs[i]!, logProbs[i]! - reference[i]!)
  const byLogit = new Float64Array(logProbs.length)
  for (let i = 0; i < logProbs.length; i++) byLogit[i] = weighted(logProbs[i]!, logProbs[i]! - reference[i]! - value)
  return { value, byLogit }
}

/** `figure` times the probability. An excluded candidate contributes 0, although its `figure` is infinite. */
function weighted(logProb: number, figure: number): number {
  const probability = exp(logProb)
  return probability === 0 ? 0 : probability * figure
}

export interface SampledKl {
  readonly value: number
  readonly byLogProb: number
}

/**
 * Estimates KL(p ‖ reference) from one sample, when the other candidates are unknown: k3 = e^-d - 1 + d with d = log p
 * - log reference, times p / behavior. With this factor, which is differentiated too, the value and the derivative are
 * unbiased for samples of `behavior`. Without it (`klCorrection: false`), k3 is unbiased only for samples of p, and
 * even then its derivative is that of KL(reference ‖ p).
 */
export function sampledKl(
  sample: SampleLogProbs & { readonly reference: number },
  {
    maxWeight = Number.POSITIVE_INFINITY,
    klCorrection = true,
  }: Partial<Pick<LossRule, 'maxWeight' | 'klCorrection'>> = {},
): SampledKl {
  const d = sample.logProb - sample.reference
  if (!klCorrection) return { value: expm1(-d) + d, byLogProb: -expm1(-d) }
  const { importance } = importanceOf(sample, maxWeight)
  return { value: importance * (expm1(-d) + d), byLogProb: importance * d }
}
