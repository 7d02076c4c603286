import { serialize } from 'node:v8'

/**
 * Checks v8's serialization without decoding it, so that a few bytes from another process cannot cost much memory or time. v8
 * itself checks lengths against the bytes that exist, with exceptions that matter:
 * - an array with holes only claims its length, and v8 sets aside eight bytes for each place: 240 MB for a dozen bytes;
 * - a resizable buffer claims how large it may become;
 * - it reads values that are nested so deep that code that walks them later overflows the stack;
 * - BigInts are cheap to read, but take seconds to print.
 *
 * The grammar is exactly what this v8 writes, and everything else is refused. So the scan and v8 cannot disagree about
 * where a value begins. It takes one pass, skips the content of texts and bytes, and keeps its state in local variables:
 * this is done to every frame.
 */

/** The arrays of a value may have as many places as it has bytes, and this many more, which may be empty. */
const FREE_PLACES = 256 * 1024
/** v8 keeps longer arrays as a table of the places in use: `x[4e9] = 1` costs nothing. */
const MOST_PLACES_SET_ASIDE = 32 * 1024 * 1024
/** `pack` lets 1000 levels through; a few more are the message around them. */
const MAX_NESTING = 1024
/** Some 20,000 decimal digits. Printing a longer one would take too long. */
export const MAX_BIGINT_BITS: number = 64 * 1024
export const MAX_RESERVED_BYTES: number = 512 * 1024 * 1024

const [MARK, VERSION] = serialize(null)

/** What follows after the tag of a value. */
const BAD = 0
const NOTHING_MORE = 1
const NUMBER = 2
const EIGHT_BYTES = 3
const SIZED = 4
const ARRAY = 5
const HOLED_ARRAY = 6
const CONTAINER = 7
const BIGINT = 8
const TYPED = 9
const BOXED_TEXT = 10
const REGEXP = 11
const RESIZABLE = 12
const SKIPPED = 13

const FORM = new Uint8Array(256)
const forms: readonly (readonly [form: number, tags: string])[] = [
  // undefined, null, true, false, and the last two as objects
  [NOTHING_MORE, '_0TFyx'],
  // int32, uint32, a reference to an earlier object
  [NUMBER, 'IU^'],
  // double, Date, Number object
  [EIGHT_BYTES, 'NDn'],
  // text in one or two bytes per character, ArrayBuffer
  [SIZED, '"cB'],
  [ARRAY, 'A'],
  [HOLED_ARRAY, 'a'],
  // object, Map, Set, Error
  [CONTAINER, "o;'r"],
  [BIGINT, 'Zz'],
  // Node's own: a view of bytes
  [TYPED, '\\'],
  [BOXED_TEXT, 's'],
  [REGEXP, 'R'],
  [RESIZABLE, '~'],
  [SKIPPED, '\0'],
]
for (const [form, tags] of forms) for (const tag of tags) FORM[tag.charCodeAt(0)] = form

const code = (tag: string) => tag.charCodeAt(0)
const LATIN1 = code('"')
const UTF16 = code('c')
const HOLE = code('-')
/** The tags that end a container. They also say in which kind of container the scan is. */
const OBJECT_END = code('{')
const ARRAY_END = code('$')
const HOLED_END = code('@')
const MAP_END = code(':')
const SET_END = code(',')
const ERROR_END = code('.')
const ROOT = 0
const END_OF = new Uint8Array(256)
END_OF[code('o')] = OBJECT_END
END_OF[code(';')] = MAP_END
END_OF[code("'")] = SET_END
END_OF[code('r')] = ERROR_END
/** EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError. */
const ERROR_KINDS = [...'ERFSTU'].map(code)
const ERROR_TEXTS = [...'ms'].map(code)
const ERROR_CAUSE = code('c')

/** What may come next at a level. */
const KEY_OR_END = 0
const VALUE = 1

/** The levels around the one that the scan is in. */
const kinds = new Uint8Array(MAX_NESTING)
const nexts = new Uint8Array(MAX_NESTING)
const counts = new Int32Array(MAX_NESTING)
/** Where the number that was read ends. */
let after = 0

let emptyPlaces = 0
/** How many array places without a byte of their own the last scan found. */
export const lastEmptyPlaces = (): number => emptyPlaces

let keysSeen = 0
/** How many keys of objects and entries of Maps and Sets the last scan found. */
export const lastKeys = (): number => keysSeen

/** Undefined if v8 may read this, else why not. */
export function scanV8(data: Uint8Array): string | undefined {
  emptyPlaces = 0
  const end = data.byteLength
  if (data[0] !== MARK || data[1] !== VERSION) return 'it is of another version of v8'
  let at = 2
  let places = FREE_PLACES + end
  let reserved = MAX_RESERVED_BYTES
  let keys = 0
  let depth = 0
  let kind = ROOT
  let next = VALUE
  /** Items of an array that are still to come. */
  let left = 0
  while (at < end) {
    const tag = data[at++]!
    let form = FORM[tag]!
    if (form === SKIPPED) continue
    if (left > 0) {
      left--
      if (tag === HOLE) continue
    } else if (next === VALUE) next = KEY_OR_END
    else if (tag === kind) {
      // Arrays have two numbers at their end, errors none, all others one.
      if (kind !== ERROR_END) at = afterNumber(data, at)
      if (kind === ARRAY_END || kind === HOLED_END) at = afterNumber(data, at)
      depth--
      kind = kinds[depth]!
      next = nexts[depth]!
      left = counts[depth]!
      continue
    } else if (kind === MAP_END) {
      keys++
      next = VALUE
    } else if (kind === SET_END) keys++
    else if (kind === ERROR_END) {
      if (tag === ERROR_CAUSE) next = VALUE
      else if (ERROR_TEXTS.includes(tag)) form = BOXED_TEXT
      else if (!ERROR_KINDS.includes(tag)) return MALFORMED
      if (form !== BOXED_TEXT) continue
    } else {
      keys++
      // A key is a text or a number.
      if (tag !== LATIN1 && tag !== UTF16 && form !== NUMBER && form !== EIGHT_BYTES) return MALFORMED
      next = VALUE
    }

    switch (form) {
      case NOTHING_MORE:
        continue
      case NUMBER:
        if (data[at]! < 0x80) at++
        else if (data[at + 1]! < 0x80) at += 2
        else if (data[at + 2]! < 0x80) at += 3
        else at = afterNumber(data, at)
        continue
      case EIGHT_BYTES:
        at += 8
        continue
      case CONTAINER:
        if (depth === MAX_NESTING) return TOO_DEEP
        kinds[depth] = kind
        nexts[depth] = next
        counts[depth++] = left
        kind = END_OF[tag]!
        next = KEY_OR_END
        left = 0
        continue
      case BOXED_TEXT:
      case REGEXP: {
        while (at < end && FORM[data[at]!] === SKIPPED) at++
        const inner = data[at++]
        if (inner !== LATIN1 && inner !== UTF16) return MALFORMED
        break
      }
      case TYPED:
        at = afterNumber(data, at)
        break
      case BAD:
        return MALFORMED
    }

    let length = at < end ? data[at]! : -1
    if (length < 0x80) at++
    else {
      length = number(data, at)
      at = after
    }
    if (length < 0 || at > end) return MALFORMED
    switch (form) {
      case ARRAY:
        if (depth === MAX_NESTING) return TOO_DEEP
        if (length > end - at) return MALFORMED
        kinds[depth] = kind
        nexts[depth] = next
        counts[depth++] = left
        kind = ARRAY_END
        next = KEY_OR_END
        left = length
        continue
      case HOLED_ARRAY:
        if (depth === MAX_NESTING) return TOO_DEEP
        if (length <= MOST_PLACES_SET_ASIDE && (places -= length) < 0) return tooSparse(length)
        kinds[depth] = kind
        nexts[depth] = next
        counts[depth++] = left
        kind = HOLED_END
        next = KEY_OR_END
        left = 0
        continue
      case BIGINT: {
        // The lowest bit is the sign.
        const bytes = Math.floor(length / 2) % 2 ** 30
        if (bytes * 8 > MAX_BIGINT_BITS) return tooLong(bytes * 8)
        at += bytes
        continue
      }
      case REGEXP:
        at = afterNumber(data, at + length)
        continue
      case RESIZABLE: {
        const most = number(data, at)
        if (most < length) return MALFORMED
        if ((reserved -= most) < 0) return TOO_ROOMY
        at = after + length
        continue
      }
      default:
        at += length
    }
  }
  emptyPlaces = Math.max(0, FREE_PLACES - places)
  keysSeen = keys
  return at === end && kind === ROOT && next === KEY_OR_END ? undefined : MALFORMED
}

/** Reads a number of up to 32 bits, seven per byte. -1 if it is malformed. */
function number(data: Uint8Array, from: number): number {
  let sum = 0
  let scale = 1
  const end = Math.min(data.byteLength, from + 5)
  for (let at = from; at < end; at++) {
    const byte = data[at]!
    sum += (byte & 0x7f) * scale
    scale *= 0x80
    if (byte >= 0x80) continue
    after = at + 1
    return sum <= 0xffffffff ? sum : -1
  }
  after = NOWHERE
  return -1
}

/** Where a number ends. NOWHERE if it is malformed. */
function afterNumber(data: Uint8Array, from: number): number {
  const end = Math.min(data.byteLength, from + 5)
  for (let at = from; at < end; at++) if (data[at]! < 0x80) return at + 1
  return NOWHERE
}

/** Beyond the end of any data: the scan stops there, and reports malformed data. */
const NOWHERE = 2 ** 32

const MALFORMED = 'it is cut short or malformed'
const TOO_DEEP = `it is nested more than ${MAX_NESTING} levels deep`
const TOO_ROOMY = `its buffers may grow beyond ${MAX_RESERVED_BYTES} bytes`
const tooLong = (bits: number) =>
  `a BigInt has ${bits} bits, and at most ${MAX_BIGINT_BITS} can be sent; send it as text`
const tooSparse = (length: number) =>
  `an array has ${length} places and nearly all of them are empty; send a Map or an object instead`
