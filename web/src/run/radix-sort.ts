const DIGIT_BITS = 16
const DIGITS = 1 << DIGIT_BITS

/**
 * Sorts rows by their keys, ascending and stable; NaN comes last. Four passes over 16 bits each: unlike a sort with a comparing
 * function, 100,000 rows take a few milliseconds, in whatever order they are.
 */
export function sortByKey(rows: Uint32Array, keyOf: (row: number) => number): Uint32Array {
  const count = rows.length
  const keys = new Float64Array(count)
  for (let place = 0; place < count; place++) keys[place] = keyOf(rows[place]!)
  const words = new Uint32Array(keys.buffer)
  for (let place = 0; place < count; place++) makeOrdered(words, place, Number.isNaN(keys[place]))
  let [order, spare] = [new Uint32Array(count).map((_, place) => place), new Uint32Array(count)]
  const starts = new Uint32Array(DIGITS)
  for (const [word, shift] of [
    [0, 0],
    [0, DIGIT_BITS],
    [1, 0],
    [1, DIGIT_BITS],
  ] as const) {
    starts.fill(0)
    for (let place = 0; place < count; place++) starts[digit(words, place, word, shift)]!++
    // All have the same digit: whole numbers have no low bits.
    if (count === 0 || starts[digit(words, 0, word, shift)] === count) continue
    for (let value = 0, sum = 0; value < DIGITS; value++) {
      const here = starts[value]!
      starts[value] = sum
      sum += here
    }
    for (let place = 0; place < count; place++) {
      const from = order[place]!
      spare[starts[digit(words, from, word, shift)]!++] = from
    }
    ;[order, spare] = [spare, order]
  }
  return order.map((place) => rows[place]!)
}

const digit = (words: Uint32Array, place: number, word: number, shift: number) =>
  (words[2 * place + word]! >>> shift) & (DIGITS - 1)

/** Changes the bits of a float so that they order as unsigned integers do. Little-endian, as all browsers are. */
function makeOrdered(words: Uint32Array, place: number, isLast: boolean): void {
  const [low, high] = [2 * place, 2 * place + 1]
  if (isLast) {
    words[low] = words[high] = 0xffffffff
  } else if (words[high]! >>> 31 === 1) {
    words[low] = ~words[low]!
    words[high] = ~words[high]!
  } else words[high] = words[high]! ^ 0x80000000
}
