/** Something with a load, and a note of where it is kept. */
export interface Loaded {
  load: number
  /** Place in its bucket, or -1 when it is in none. Owned by LoadBuckets. */
  slot: number
}

/**
 * The least loaded worker in constant time, whether there are ten or a thousand: workers stand in buckets by load, and
 * `#lowest` never exceeds the lowest bucket that is not empty.
 */
export class LoadBuckets<T extends Loaded> {
  readonly #buckets: T[][] = []
  #lowest = 0
  size = 0

  add(item: T): void {
    let bucket = this.#buckets[item.load]
    if (bucket === undefined) {
      for (let load = this.#buckets.length; load <= item.load; load++) this.#buckets.push([])
      bucket = this.#buckets[item.load]!
    }
    item.slot = bucket.length
    bucket.push(item)
    this.size++
    if (item.load < this.#lowest) this.#lowest = item.load
  }

  /** Must be called before the load changes. */
  remove(item: T): void {
    const bucket = this.#buckets[item.load]!
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
