/**
 * What became of a trajectory that was added: `held`; or it was not kept, because it `failed` (and the policy for such is to drop them); was `lost` to
 * something that the agent did not do; is `ungraded`; is `held-out`, of a split that is not for training; or is a `duplicate`, or came after its group was closed;
 * or its steps were `removed` from the store to save space.
 */
export type Added = 'held' | 'failed' | 'lost' | 'ungraded' | 'held-out' | 'duplicate' | 'removed'

/** What a buffer holds, and what came of everything that was added so far. */
export interface BufferStats {
  /** Trajectories, those of open groups included; never more than the capacity. */
  readonly size: number
  /** Closed groups, from which samples are drawn; and open ones. */
  readonly groups: number
  readonly openGroups: number
  readonly added: Readonly<Record<Added, number>>
  /** Trajectories that made room for newer ones, of closed groups and of open ones; the latter were never sampled. */
  readonly evicted: number
  readonly abandoned: number
  /** Bytes of packed groups. */
  readonly packedBytes: number
}
