import { deserialize, serialize } from 'node:v8'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { Trajectory, type TrajectoryParts } from '../trajectory/trajectory.ts'

/** Rollouts of a group are so similar that the fastest level compresses well. */
const LEVEL = { level: 1 }

/**
 * A closed group. It can be packed: all its trajectories become one compressed block, about a tenth of their JSON size,
 * because rollouts of one task are similar. Groups are added and dropped as a whole, so no part needs separate access.
 */
export class HeldGroup {
  /** The position in the order in which groups were opened, from 0. */
  readonly order: number
  readonly key: string
  readonly id: string
  readonly run: string | null
  /** Arrays, because a typed array takes ten times as much memory for one number. */
  readonly rewards: readonly number[]
  readonly advantages: readonly number[]
  /** True for failed rollouts, whose rewards were set by the policy for failed rollouts. */
  readonly failed: readonly boolean[]
  #held: readonly Trajectory[] | Uint8Array

  constructor(
    parts: Pick<HeldGroup, 'order' | 'key' | 'id' | 'run' | 'rewards' | 'advantages' | 'failed'>,
    trajectories: readonly Trajectory[],
  ) {
    this.order = parts.order
    this.key = parts.key
    this.id = parts.id
    this.run = parts.run
    this.rewards = parts.rewards
    this.advantages = parts.advantages
    this.failed = parts.failed
    this.#held = trajectories
  }

  get size(): number {
    return this.rewards.length
  }

  /** 0 if the group is not packed. */
  get packedBytes(): number {
    return this.#held instanceof Uint8Array ? this.#held.byteLength : 0
  }

  /** Compresses the trajectories. A group with values that cannot be serialized, such as functions, stays unpacked. */
  pack(): void {
    if (this.#held instanceof Uint8Array) return
    try {
      const bytes = deflateRawSync(serialize(this.#held.map(partsOf)), LEVEL)
      // Copied, because zlib returns a view of a 16 KB block, which would stay in memory.
      this.#held = new Uint8Array(bytes)
    } catch {
      // The group stays unpacked.
    }
  }

  trajectories(): readonly Trajectory[] {
    if (!(this.#held instanceof Uint8Array)) return this.#held
    const parts = deserialize(inflateRawSync(this.#held)) as readonly TrajectoryParts[]
    return parts.map((one) => new Trajectory(one))
  }
}

const partsOf = ({ ...parts }: Trajectory): TrajectoryParts => parts
