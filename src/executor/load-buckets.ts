/** Something with a load, and a note of where it is kept. */
export interface Loaded {
  load: number
  /** How many times slower it is than the fastest: one task there counts as so many. */
  readonly weight: number
  /** The bucket that it is in. Owned by LoadBuckets. */
  bucket: number
  /** Place in its bucket, or -1 when it is in none. Owned by LoadBuckets. */
  slot: number
}

/**
 * The least loaded worker in constant time, whether there are ten or a thousand: workers stand in buckets by load and
 * speed, and
 * `#lowest` never exceeds the lowest bucket that is not empty.
 */
export class LoadBuckets<T extends Loaded> {
  readonly #buckets: T[][] = []
  #lowest = 0
  size = 0

  add(item: T): void {
    // With one more task: of two that are idle, the faster is less loaded.
    const rank = (item.load + 1) * item.weight - 1
    let bucket = this.#buckets[rank]
    if (bucket === undefined) {
      for (let next = this.#buckets.length; next <= rank; next++) this.#buckets.push([])
      bucket = this.#buckets[rank]!
    }
    item.bucket = rank
    item.slot = bucket.length
    bucket.push(item)
    this.size++
    if (rank < this.#lowest) this.#lowest = rank
  }

  remove(item: T): void {
    const bucket = this.#buckets[item.bucket]!
    const last = bucket.pop()!
    if (last !== item) {
      bucket[item.slot] = last
      last.slot = item.slot
    }
    item.slot = -1
    this.size--
  }

  least(): T | undefined {
    if (this.size === 0) return undefined
    while (this.#buckets[this.#lowest]!.length === 0) this.#lowest++
    return this.#buckets[this.#lowest]!.at(-1)
  }

  *[Symbol.iterator](): Generator<T> {
    for (const bucket of this.#buckets) yield* bucket
  }
}
