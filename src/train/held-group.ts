import { deserialize, serialize } from 'node:v8'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { Trajectory, type TrajectoryParts } from '../trajectory/trajectory.ts'

/** Rollouts of a group repeat each other: the fastest level finds most of it. */
const LEVEL = { level: 1 }

/**
 * A closed group. It can be packed: all its trajectories as one block of compressed bytes, about a tenth of what they take as JSON, since rollouts of one
 * task have much in common. A group comes and goes as a whole, so nothing smaller has to be found in it.
 */
export class HeldGroup {
  /** Of the group that was opened first, 0. */
  readonly order: number
  readonly key: string
  readonly id: string
  readonly run: string | null
  /** Lists rather than typed arrays, which take ten times as much for one number. */
  readonly rewards: readonly number[]
  readonly advantages: readonly number[]
  /** Failed: their rewards are those of the policy for such. */
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

  /** 0: it is not packed. */
  get packedBytes(): number {
    return this.#held instanceof Uint8Array ? this.#held.byteLength : 0
  }

  /** A group that holds what cannot be written, such as a function, stays as it is. */
  pack(): void {
    if (this.#held instanceof Uint8Array) return
    try {
      const bytes = deflateRawSync(serialize(this.#held.map(partsOf)), LEVEL)
      // Copied: what zlib returns is a view on a block of 16 KB, which would be kept with it.
      this.#held = new Uint8Array(bytes)
    } catch {
      // It takes more memory, and is as good.
    }
  }

  trajectories(): readonly Trajectory[] {
    if (!(this.#held instanceof Uint8Array)) return this.#held
    const parts = deserialize(inflateRawSync(this.#held)) as readonly TrajectoryParts[]
    return parts.map((one) => new Trajectory(one))
  }
}

const partsOf = ({ ...parts }: Trajectory): TrajectoryParts => parts
