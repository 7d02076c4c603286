/** The ratio of a bucket's upper to its lower edge: its middle is at most 1 % away from any value in it. */
const GROWTH = 1.02
/** Shorter durations count as 0, and longer durations than 11 days are not told apart. */
const SMALLEST_MS = 0.001
const LARGEST_MS = 1e9
const BUCKETS = bucketOf(LARGEST_MS) + 1

function bucketOf(ms: number): number {
  return ms <= SMALLEST_MS ? 0 : Math.ceil(Math.log(ms / SMALLEST_MS) / Math.log(GROWTH))
}

/** Percentiles of any number of durations in a few kilobytes, within 1 % of the exact ones. */
export class Percentiles {
  readonly #buckets = new Float64Array(BUCKETS)
  #count = 0
  #max = 0

  add(ms: number): void {
    this.#buckets[Math.min(bucketOf(ms), BUCKETS - 1)]!++
    this.#count++
    if (ms > this.#max) this.#max = ms
  }

  get count(): number {
    return this.#count
  }

  /** Exact. */
  get max(): number {
    return this.#max
  }

  /** The duration that this share (0 to 1) of all values does not exceed. */
  at(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.#count))
    let seen = 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#buckets[bucket]!
      if (seen >= rank) return bucket === 0 ? 0 : Math.min(this.#max, SMALLEST_MS * GROWTH ** (bucket - 0.5))
    }
    return this.#max
  }
}
