/** Something with a load, and its position in the buckets. */
export interface Loaded {
  load: number
  /** How many times slower it is than the fastest; one task there counts as that many. */
  readonly weight: number
  /** The bucket that it is in. Owned by LoadBuckets. */
  bucket: number
  /** Index in its bucket, or -1 if it is in none. Owned by LoadBuckets. */
  slot: number
}

/**
 * Finds the least loaded worker in constant time, whether there are ten or a thousand: workers are in buckets by load and
 * speed. Invariant: `#lowest` never exceeds the lowest bucket that is not empty.
 */
export class LoadBuckets<T extends Loaded> {
  readonly #buckets: T[][] = []
  #lowest = 0
  size = 0

  add(item: T): void {
    // Counts one task more, so that of two idle workers the faster one is less loaded.
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
