/**
 * Whether an id was seen before, for streams of any length: it keeps 8 bytes per id instead of the id itself. With two 32-bit
 * hashes, the chance of a false alarm among a million ids is 1 in 40 million. A random start makes it differ between runs.
 */
export class IdSet {
  #table = new Uint32Array(2 * 1024)
  #size = 0
  readonly #start = (Math.random() * 2 ** 32) >>> 0

  /** False if it was seen before. */
  add(id: string): boolean {
    let a = this.#start
    let b = ~this.#start
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i)
      a = Math.imul(a ^ code, 0x01000193)
      b = Math.imul(b ^ code, 0x85ebca6b) + i
    }
    a = mix(a)
    // Zero marks a free place.
    b = mix(b ^ id.length) || 1
    if (!this.#insert(this.#table, a, b)) return false
    if (++this.#size * 3 > this.#table.length) this.#grow()
    return true
  }

  #insert(table: Uint32Array, a: number, b: number): boolean {
    const mask = table.length / 2 - 1
    for (let at = a & mask; ; at = (at + 1) & mask) {
      const second = table[2 * at + 1]!
      if (second === 0) {
        table[2 * at] = a
        table[2 * at + 1] = b
        return true
      }
      if (second === b && table[2 * at] === a) return false
    }
  }

  #grow(): void {
    const larger = new Uint32Array(this.#table.length * 2)
    for (let i = 0; i < this.#table.length; i += 2)
      if (this.#table[i + 1] !== 0) this.#insert(larger, this.#table[i]!, this.#table[i + 1]!)
    this.#table = larger
  }
}

function mix(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
