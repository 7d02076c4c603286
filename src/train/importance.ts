import { exp } from './exact-math.ts'

/** An action or a token, with its log-probability under three policies. */
export interface SampleLogProbs {
  /** Of the policy that is being trained, now. */
  readonly logProb: number
  /** Of the policy that acted. */
  readonly behaviour: number
  /** Of the learner at the start of the update. Left out: as `behaviour`. */
  readonly proximal?: number | undefined
}

export interface Importance {
  /** p / proximal: how far this update has moved the policy. Losses clip it. */
  readonly ratio: number
  /** proximal / behaviour: how stale the sample was when the update began. */
  readonly staleness: number
  /** `staleness`, at most `maxWeight`. A constant in every derivative. */
  readonly correction: number
  readonly isCapped: boolean
  /** `correction` times `ratio`: p / behaviour, unless the correction is capped. */
  readonly importance: number
}

export function importanceOf(
  { logProb, behaviour, proximal = behaviour }: SampleLogProbs,
  maxWeight: number,
): Importance {
  const ratio = exp(logProb - proximal)
  const staleness = exp(proximal - behaviour)
  const isCapped = staleness > maxWeight
  const correction = isCapped ? maxWeight : staleness
  // With a proximal policy far from both others, the product of the two would be 0 · Infinity.
  const importance = isCapped ? correction * ratio : exp(logProb - behaviour)
  return { ratio, staleness, correction, isCapped, importance }
}
