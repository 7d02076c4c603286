import { scramble } from './hash.ts'

/**
 * Features of several candidates, one after another, as buckets and values. The low bits of the hash select the bucket;
 * its highest bit is the sign, so that collisions cancel out on average.
 */
export class FeatureList {
  buckets: Int32Array = new Int32Array(256)
  values: Float64Array = new Float64Array(256)
  length = 0
  readonly #mask: number

  constructor(bits: number) {
    this.#mask = 2 ** bits - 1
  }

  add(hash: number, value: number): void {
    if (this.length === this.buckets.length) this.#grow()
    const mixed = scramble(hash)
    this.buckets[this.length] = mixed & this.#mask
    this.values[this.length++] = mixed < 0 ? -value : value
  }

  /** Divides the features added since `begin` by the square root of their number. */
  scale(begin: number): void {
    const factor = 1 / Math.sqrt(this.length - begin)
    for (let i = begin; i < this.length; i++) this.values[i] = this.values[i]! * factor
  }

  /** The sum of weights times values, in the order in which they were added. */
  dot(weights: Float64Array, begin: number, end: number): number {
    const { buckets, values } = this
    let sum = 0
    for (let i = begin; i < end; i++) sum += weights[buckets[i]!]! * values[i]!
    return sum
  }

  /** Adds the values times a factor to a gradient. */
  addTo(gradient: Float64Array, factor: number, begin: number, end: number): void {
    const { buckets, values } = this
    for (let i = begin; i < end; i++) gradient[buckets[i]!] = gradient[buckets[i]!]! + factor * values[i]!
  }

  #grow(): void {
    const buckets = new Int32Array(this.buckets.length * 2)
    const values = new Float64Array(buckets.length)
    buckets.set(this.buckets)
    values.set(this.values)
    this.buckets = buckets
    this.values = values
  }
}
