import { sortByKey } from './radix-sort.ts'

const LONGEST = 200
/** Longer numbers are not exact in JavaScript. */
const MOST_DIGITS = 15
const [ZERO, NINE] = [48, 57]

/** The position of each text in alphabetical order, with numbers in texts by their values. NaN for null. */
export function naturalRanks(texts: readonly (string | null)[]): Float64Array {
  const count = texts.length
  // Most ids have the same texts around a number. Sort by the text after the first number, then by the number, then by
  // the text before it.
  const [before, after] = [new Distinct(count), new Distinct(count)]
  const numbers = new Float64Array(count).fill(-1)
  for (let row = 0; row < count; row++) {
    const text = (texts[row] ?? '').slice(0, LONGEST).toLowerCase()
    const from = firstDigit(text)
    let to = from
    if (from < text.length) numbers[row] = 0
    for (; to < text.length && to < from + MOST_DIGITS && isDigit(text.charCodeAt(to)); to++)
      numbers[row] = 10 * numbers[row]! + text.charCodeAt(to) - ZERO
    before.add(row, text.slice(0, from))
    after.add(row, text.slice(to))
  }
  const keys = [after.ranks(), numbers, before.ranks()]
  let order: Uint32Array = Uint32Array.from(numbers.keys())
  for (const values of keys) order = sortByKey(order, (row) => values[row]!)
  const ranks = new Float64Array(count)
  let rank = 0
  for (let place = 0; place < count; place++) {
    const [row, last] = [order[place]!, order[place - 1]]
    if (last !== undefined && keys.some((values) => values[row] !== values[last])) rank++
    ranks[row] = texts[row] === null ? Number.NaN : rank
  }
  return ranks
}

/** A column with few distinct texts. */
class Distinct {
  readonly #numberOf = new Map<string, number>()
  readonly #numbers: Uint32Array

  constructor(count: number) {
    this.#numbers = new Uint32Array(count)
  }

  add(row: number, text: string): void {
    let number = this.#numberOf.get(text)
    if (number === undefined) this.#numberOf.set(text, (number = this.#numberOf.size))
    this.#numbers[row] = number
  }

  /** The rank of each row's text. */
  ranks(): Float64Array {
    const keys = [...this.#numberOf.keys()].map((text, number) => ({ number, key: padded(text) }))
    keys.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    const rank = new Float64Array(keys.length)
    for (const [place, { number }] of keys.entries()) rank[number] = place
    return Float64Array.from(this.#numbers, (number) => rank[number]!)
  }
}

function firstDigit(text: string): number {
  let at = 0
  while (at < text.length && !isDigit(text.charCodeAt(at))) at++
  return at
}

const isDigit = (code: number) => code >= ZERO && code <= NINE

const padded = (text: string) => text.replace(/\d+/g, (digits) => digits.padStart(MOST_DIGITS, '0'))
