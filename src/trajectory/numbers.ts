/**
 * Encodes arrays of numbers as bytes: token ids in two or three bytes each, log-probabilities in four or eight, where JSON
 * takes ten to twenty. Decoding returns exactly the same numbers, including NaN, infinities and -0, in the same kind of array.
 *
 *   byte 0: the kind of array     byte 1: the encoding     then the numbers
 *
 * | encoding | used if | format |
 * |---|---|---|
 * | 0 | all are integers from 0 to 2^53 - 1 | LEB128: seven bits per byte, the lowest first |
 * | 1 | all fit a 32-bit float exactly | IEEE 754, little endian |
 * | 2 | otherwise | IEEE 754, 64 bits, little endian |
 * | 3 | it is an array of bytes | as they are |
 */
export type NumberArray =
  | readonly number[]
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array

/** Kinds of arrays by byte 0. Stored files depend on this order. */
const KINDS = [
  Array,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
] as const

/** The longest array that can be recorded: 512 MB as 64-bit floats. */
export const MOST_NUMBERS = 64 * 1024 * 1024

const WRITTEN = { whole: 0, float32: 1, float64: 2, bytes: 3 } as const
const HEADER_BYTES = 2

/** Whether this encoding restores the array exactly. */
export function isNumberArray(value: object): value is NumberArray {
  const kind = kindOf(value)
  if (kind > 0) return true
  if (kind < 0) return false
  const list = value as unknown[]
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== 'number') return false
  return true
}

// Not `instanceof`: a subclass such as Buffer would be restored as its base class.
const kindOf = (value: object): number => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return KINDS.findIndex((kind) => prototype === kind.prototype)
}

export function encodeNumbers(numbers: NumberArray): ArrayBuffer {
  const written = bestFor(numbers)
  const bytes = write(numbers, written)
  bytes[0] = kindOf(numbers)
  bytes[1] = written
  return bytes.buffer
}

/** Writes numbers to a new buffer, with room for the header. */
function write(numbers: NumberArray, written: number): Uint8Array<ArrayBuffer> {
  switch (written) {
    case WRITTEN.whole:
      return writeWhole(numbers)
    case WRITTEN.bytes:
      return writeBytes(numbers as Uint8Array)
    default:
      return writeFloats(numbers, written === WRITTEN.float32 ? 4 : 8)
  }
}

export function decodeNumbers(buffer: ArrayBuffer): NumberArray {
  const bytes = new Uint8Array(buffer)
  const kind = KINDS[bytes[0] ?? -1]
  if (kind === undefined) throw new RangeError(`an array of numbers has the unknown kind ${bytes[0]}`)
  const count = countOf(bytes)
  if (count > MOST_NUMBERS) throw new RangeError(`an array has ${count} numbers, more than ${MOST_NUMBERS}`)
  const numbers = new kind(count) as number[] | Float64Array
  switch (bytes[1]) {
    case WRITTEN.bytes:
      for (let i = 0; i < count; i++) numbers[i] = bytes[HEADER_BYTES + i]!
      break
    case WRITTEN.whole:
      readWhole(bytes, numbers)
      break
    default:
      readFloats(bytes, numbers, bytes[1] === WRITTEN.float32 ? 4 : 8)
  }
  return numbers
}

/** An upper bound of the memory that the decoded array takes. */
export function mostDecodedBytes(buffer: ArrayBuffer): number {
  const [, written] = new Uint8Array(buffer, 0, Math.min(buffer.byteLength, HEADER_BYTES))
  return buffer.byteLength * (written === WRITTEN.float64 ? 1 : written === WRITTEN.float32 ? 2 : 8)
}

/** Counts the numbers. */
function countOf(bytes: Uint8Array): number {
  const size = bytes.length - HEADER_BYTES
  switch (bytes[1]) {
    case WRITTEN.bytes:
      return size
    case WRITTEN.whole: {
      let count = 0
      for (let at = HEADER_BYTES; at < bytes.length; at++) if (bytes[at]! < 128) count++
      if (size > 0 && bytes.at(-1)! >= 128) throw new RangeError('an array of numbers is truncated')
      return count
    }
    case WRITTEN.float32:
    case WRITTEN.float64: {
      const count = size / (bytes[1] === WRITTEN.float32 ? 4 : 8)
      if (!Number.isInteger(count)) throw new RangeError('an array of numbers is truncated')
      return count
    }
    default:
      throw new RangeError(`an array of numbers has the unknown encoding ${bytes[1]}`)
  }
}

function bestFor(numbers: NumberArray): number {
  if (numbers instanceof Uint8Array || numbers instanceof Uint8ClampedArray) return WRITTEN.bytes
  let whole = true
  let short = true
  for (let i = 0; i < numbers.length && (whole || short); i++) {
    const number = numbers[i]!
    if (whole && !(Number.isSafeInteger(number) && number >= 0 && !Object.is(number, -0))) whole = false
    if (short && !Object.is(Math.fround(number), number)) short = false
  }
  return whole ? WRITTEN.whole : short ? WRITTEN.float32 : WRITTEN.float64
}

function writeBytes(numbers: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + numbers.length)
  bytes.set(numbers, HEADER_BYTES)
  return bytes
}

function writeWhole(numbers: NumberArray): Uint8Array<ArrayBuffer> {
  let size = HEADER_BYTES + numbers.length
  for (let i = 0; i < numbers.length; i++)
    for (let rest = numbers[i]!; rest >= 128; rest = Math.floor(rest / 128)) size++
  const bytes = new Uint8Array(size)
  let at = HEADER_BYTES
  for (let i = 0; i < numbers.length; i++) {
    let rest = numbers[i]!
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 128
    bytes[at++] = rest
  }
  return bytes
}

function readWhole(bytes: Uint8Array, into: number[] | Float64Array): void {
  let number = 0
  let unit = 1
  let count = 0
  for (let at = HEADER_BYTES; at < bytes.length; at++) {
    const byte = bytes[at]!
    number += (byte & 127) * unit
    if (byte >= 128) unit *= 128
    else {
      into[count++] = number
      number = 0
      unit = 1
    }
  }
}

function writeFloats(numbers: NumberArray, size: 4 | 8): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + numbers.length * size)
  const view = new DataView(bytes.buffer)
  for (let i = 0, at = HEADER_BYTES; i < numbers.length; i++, at += size)
    if (size === 4) view.setFloat32(at, numbers[i]!, true)
    else view.setFloat64(at, numbers[i]!, true)
  return bytes
}

function readFloats(bytes: Uint8Array, into: number[] | Float64Array, size: 4 | 8): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let i = 0, at = HEADER_BYTES; i < into.length; i++, at += size)
    into[i] = size === 4 ? view.getFloat32(at, true) : view.getFloat64(at, true)
}
