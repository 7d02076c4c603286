/**
 * What became of an added trajectory. `held`: it was kept. Otherwise it was not, because it `failed` and the policy for
 * failed rollouts is to drop them; was `lost` for a reason other than the agent; is `ungraded`; is `held-out`, of a
 * split that is not for training; is a `duplicate`, or came after its group was closed; or its steps were `removed`
 * from the store to save space.
 */
export type Added = 'held' | 'failed' | 'lost' | 'ungraded' | 'held-out' | 'duplicate' | 'removed'

/** What a buffer holds, and what became of everything added so far. */
export interface BufferStats {
  /** Trajectories held, including those of open groups; never more than the capacity. */
  readonly size: number
  /** Closed groups, from which samples are drawn, and open groups. */
  readonly groups: number
  readonly openGroups: number
  readonly added: Readonly<Record<Added, number>>
  /**
   * Trajectories dropped to make room: `evicted` from closed groups, `abandoned` with open groups, which were never
   * sampled.
   */
  readonly evicted: number
  readonly abandoned: number
  /** The size of compressed groups, in bytes. */
  readonly packedBytes: number
}
