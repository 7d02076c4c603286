export interface BestOptions {
  /** If several are equally good, keep at most this many, the first ones. Default: all. */
  readonly most?: number | undefined
  /** Select nothing if the highest reward is below this. */
  readonly atLeast?: number | undefined
}

/**
 * Rejection sampling: the indexes of the rollouts of a group that have its highest reward, in order. Rollouts without a
 * reward are never selected.
 */
export function bestRollouts(
  rewards: readonly (number | null)[],
  { most = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY }: BestOptions = {},
): number[] {
  const known = rewards.filter((reward) => reward !== null && !Number.isNaN(reward)) as number[]
  if (known.length === 0) return []
  const highest = known.reduce((a, b) => Math.max(a, b))
  if (highest < atLeast) return []
  return rewards.flatMap((reward, index) => (reward === highest ? [index] : [])).slice(0, most)
}
