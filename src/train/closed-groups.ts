import type { HeldGroup } from './held-group.ts'
import { Ring } from './ring.ts'

/**
 * The closed groups of a buffer, in the order in which they were closed. The newest are held uncompressed, the others
 * packed.
 */
export class ClosedGroups {
  readonly #groups = new Ring<HeldGroup>()
  /** Keys of the groups that belong to a named run, to detect late and duplicate trajectories. */
  readonly #keys = new Set<string>()
  readonly #mostUnpacked: number
  /** The oldest `#packed` groups are packed; the others have `#unpackedSize` trajectories. */
  #packed = 0
  #unpackedSize = 0
  #packedBytes = 0

  constructor(mostUnpacked: number) {
    this.#mostUnpacked = mostUnpacked
  }

  get length(): number {
    return this.#groups.length
  }

  get packedBytes(): number {
    return this.#packedBytes
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** Index 0 is the oldest group. */
  at(index: number): HeldGroup | undefined {
    return this.#groups.at(index)
  }

  push(group: HeldGroup): void {
    this.#groups.push(group)
    if (group.run !== null) this.#keys.add(group.key)
    this.#unpackedSize += group.size
    while (this.#unpackedSize > this.#mostUnpacked) this.#packNext()
  }

  shift(): HeldGroup | undefined {
    const group = this.#groups.shift()
    if (group === undefined) return undefined
    this.#keys.delete(group.key)
    this.#packedBytes -= group.packedBytes
    if (this.#packed > 0) this.#packed--
    else this.#unpackedSize -= group.size
    return group
  }

  #packNext(): void {
    const group = this.#groups.at(this.#packed++)!
    this.#unpackedSize -= group.size
    group.pack()
    this.#packedBytes += group.packedBytes
  }
}
