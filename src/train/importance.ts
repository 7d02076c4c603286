import { exp } from './exact-math.ts'

/** An action or a token, with its log-probability under three policies. */
export interface SampleLogProbs {
  /** Under the policy being trained, now. */
  readonly logProb: number
  /** Under the policy that acted. */
  readonly behavior: number
  /** Under the learner at the start of the update. Default: `behavior`. */
  readonly proximal?: number | undefined
}

export interface Importance {
  /** p / proximal: how far this update has moved the policy. Losses clip this. */
  readonly ratio: number
  /** proximal / behavior: how stale the sample was when the update began. */
  readonly staleness: number
  /** `staleness`, limited to `maxWeight`. Treated as a constant in derivatives. */
  readonly correction: number
  readonly isCapped: boolean
  /** `correction` times `ratio`: p / behavior, unless the correction is capped. */
  readonly importance: number
}

export function importanceOf(
  { logProb, behavior, proximal = behavior }: SampleLogProbs,
  maxWeight: number,
): Importance {
  const ratio = exp(logProb - proximal)
  const staleness = exp(proximal - behavior)
  const isCapped = staleness > maxWeight
  const correction = isCapped ? maxWeight : staleness
  // Not the product: with a proximal policy far from both others, it would be 0 · Infinity.
  const importance = isCapped ? correction * ratio : exp(logProb - behavior)
  return { ratio, staleness, correction, isCapped, importance }
}
