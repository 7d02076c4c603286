/**
 * Encodes a text as its difference from another. The steps of an episode resemble each other, so each is stored as its
 * difference from the step before. A delta is a list of pairs, in the order of the text; numbers are varints:
 *
 *     count of new bytes, the new bytes, start of the copied piece in the base, its length
 *
 * This is several times faster than a compressor, which would need new state for every step.
 */

/** A copied piece costs up to five bytes, so shorter matches are not worth a copy. */
const LEAST_COPY = 8
const HASH_BITS = 11
const table = new Int32Array(1 << HASH_BITS)

/** Returns undefined if the delta would be longer than `most` bytes. */
export function encodeDelta(base: Buffer, text: Buffer, most: number): Buffer | undefined {
  const out: number[] = []
  table.fill(-1)
  for (let at = 0; at + LEAST_COPY <= base.length; at++) table[hashAt(base, at)] = at
  let fresh = 0
  let at = 0
  // The position in the base after the last copy. Most copies continue there.
  let expected = 0
  while (at + LEAST_COPY <= text.length && out.length < most) {
    let from = isCopy(base, expected, text, at) ? expected : table[hashAt(text, at)]!
    let length = from < 0 ? 0 : lengthOfCopy(base, from, text, at)
    if (length < LEAST_COPY) {
      at++
      expected++
      continue
    }
    while (at > fresh && from > 0 && text[at - 1] === base[from - 1]) {
      at--
      from--
      length++
    }
    append(out, text, fresh, at)
    varint(out, from)
    varint(out, length)
    at += length
    fresh = at
    expected = from + length
  }
  append(out, text, fresh, text.length)
  return out.length > most ? undefined : Buffer.from(out)
}

/** Throws if the delta is malformed: the file may be hostile. `most`: the largest size of the text, in bytes. */
export function decodeDelta(base: Buffer, delta: Uint8Array, most: number): Buffer {
  const parts: Uint8Array[] = []
  let size = 0
  let at = 0
  const take = (from: Uint8Array, start: number, length: number) => {
    if (start + length > from.length) throw new Error('a step delta copies bytes outside its base')
    if ((size += length) > most) throw new Error(`a step exceeds ${most} bytes`)
    parts.push(from.subarray(start, start + length))
  }
  const number = (): number => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = delta[at++]
      if (byte === undefined || shift > 2 ** 28) throw new Error('a step delta is truncated')
      value += (byte & 127) * shift
      if (byte < 128) return value
    }
  }
  while (at < delta.length) {
    const fresh = number()
    take(delta, at, fresh)
    at += fresh
    if (at >= delta.length) break
    const from = number()
    take(base, from, number())
  }
  return Buffer.concat(parts)
}

function append(out: number[], text: Buffer, from: number, to: number): void {
  varint(out, to - from)
  for (let at = from; at < to; at++) out.push(text[at]!)
}

function varint(out: number[], value: number): void {
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest & 127) | 128)
  out.push(rest)
}

const word = (bytes: Buffer, at: number) =>
  bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)

/** Hashes eight bytes. */
const hashAt = (bytes: Buffer, at: number) =>
  Math.imul(word(bytes, at) ^ Math.imul(word(bytes, at + 4), 0x85ebca6b), 0x9e3779b1) >>> (32 - HASH_BITS)

const isCopy = (base: Buffer, from: number, text: Buffer, at: number) =>
  from + LEAST_COPY <= base.length && word(base, from) === word(text, at) && word(base, from + 4) === word(text, at + 4)

function lengthOfCopy(base: Buffer, from: number, text: Buffer, at: number): number {
  const most = Math.min(base.length - from, text.length - at)
  let length = 0
  while (length < most && base[from + length] === text[at + length]) length++
  return length
}
