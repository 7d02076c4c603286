import type { PackedJson } from './packed-json.ts'

/** Parts are compressed together, up to this many characters. */
const BLOCK_CHARS = 64 * 1024
/** After this many consecutive parts that do not fit, the rest is skipped. */
const MISSES = 50

interface Part {
  readonly json: string
}

/** A list inside the JSON of a report. It accepts parts until the report has reached its size limit. */
export class PartList {
  readonly #json: PackedJson
  readonly #most: number
  #isEmpty = true
  #blockChars = BLOCK_CHARS

  constructor(json: PackedJson, most: number) {
    this.#json = json
    this.#most = most
  }

  /** Adds parts that fit, in order, and stops reading them if there is no more room. */
  async fill<One extends Part>(parts: AsyncIterable<One>, added: (part: One) => void): Promise<void> {
    let block: One[] = []
    let chars = 0
    let misses = 0
    const flush = () => {
      for (let rest = block; rest.length > 0; ) {
        const count = this.#add(rest)
        for (const part of rest.slice(0, count)) added(part)
        // A small part may fit where a large one does not. There is little room left, so try them one by one.
        const isAll = count === rest.length
        misses = isAll ? 0 : (count === 0 ? misses : 0) + 1
        this.#blockChars = isAll ? Math.min(BLOCK_CHARS, 2 * this.#blockChars) : 1
        rest = rest.slice(count + 1)
      }
      block = []
      chars = 0
    }
    for await (const part of parts) {
      block.push(part)
      chars += part.json.length
      if (chars >= this.#blockChars) flush()
      if (misses >= MISSES) return
    }
    flush()
  }

  /** Adds the first of these parts, as many as fit, and returns their number. */
  #add(parts: readonly Part[]): number {
    const text = parts.map(({ json }) => json).join(',')
    if (this.#json.addWithin(this.#most, this.#isEmpty ? text : `,${text}`)) {
      this.#isEmpty = false
      return parts.length
    }
    if (parts.length === 1) return 0
    const half = Math.ceil(parts.length / 2)
    const count = this.#add(parts.slice(0, half))
    return count < half ? count : count + this.#add(parts.slice(half))
  }
}
