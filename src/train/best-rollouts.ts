export interface BestOptions {
  /** Of several that are equally good, at most so many, the first ones. Default: all. */
  readonly most?: number | undefined
  /** The best must have at least this reward, or there is none. */
  readonly atLeast?: number | undefined
}

/**
 * Rejection sampling: the places of the rollouts of a group that have its highest reward, in their order. A rollout without a reward,
 * because it failed or nobody can tell, is never among them.
 */
export function bestRollouts(
  rewards: readonly (number | null)[],
  { most = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY }: BestOptions = {},
): number[] {
  const known = rewards.filter((reward) => reward !== null && !Number.isNaN(reward)) as number[]
  if (known.length === 0) return []
  const highest = known.reduce((a, b) => Math.max(a, b))
  if (highest < atLeast) return []
  return rewards.flatMap((reward, place) => (reward === highest ? [place] : [])).slice(0, most)
}
