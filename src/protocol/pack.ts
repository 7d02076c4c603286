import { deserialize, serialize } from 'node:v8'
import { scanV8 } from './scan-v8.ts'
import { MAX_DEPTH, whyNotSendable } from './sendable.ts'

/** Above this a value is serialized on its own. */
const INLINE_CHARS = 8 * 1024
const INLINE_OBJECTS = 24
const INLINE_DEPTH = 8
/** A larger value is refused: several copies of it must fit in memory. */
export const MAX_VALUE_BYTES = 512 * 1024 * 1024

/** Thrown if a value cannot be sent. The caller adds whose value it was. */
export class NotPackable extends Error {}

const UNSUITABLE = Symbol('unsuitable')
let chars = 0
const seen: object[] = []

/**
 * Makes a value ready to be sent in a batch, at the moment it is given, so that
 * - a later change by its owner is not seen at the other end,
 * - two tasks of one batch never share an object (one v8 batch keeps shared references),
 * - a value that cannot be sent is found here, with the path to it, and not in the middle of a batch.
 *
 * Small plain data is copied and stays a value. Large plain data becomes its JSON text, which is twice as fast to read
 * as v8's format; the rest (Map, Date, bytes, cycles) becomes the bytes of its own v8 serialization. So in a packed value, a
 * boxed String always is JSON text, and bytes always are v8's: a user's own boxed strings and bytes are serialized too.
 */
export function pack(value: unknown): unknown {
  chars = 0
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'string') return value.length > INLINE_CHARS ? packLarge(value) : keep(value)
    if (typeof value === 'function' || typeof value === 'symbol') throw new NotPackable(`it is a ${typeof value}`)
    return isLong(value) ? packBytes(value) : value
  }
  return packObject(value, packBytes)
}

/** Combines values that were packed one by one. Their limits are not checked again. */
export function repack(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return pack(value)
  return packObject(value, (whole) => checkSize(whole, () => serializeAll(whole, 2 * MAX_DEPTH)))
}

function packObject(value: object, packRest: (value: unknown) => Uint8Array): unknown {
  chars = 0
  seen.length = 0
  const copy = copyPlain(value, 0)
  return copy === UNSUITABLE ? packLarge(value, packRest) : copy
}

/** The rough size of what `pack` returned last. */
export const lastPackedSize = (packed: unknown): number =>
  packed instanceof Uint8Array ? packed.byteLength : packed instanceof String ? packed.length : chars + 16

export function unpack(packed: unknown): unknown {
  if (typeof packed !== 'object') return packed
  if (packed instanceof String) return JSON.parse(packed.valueOf())
  return packed instanceof Uint8Array ? deserialize(packed) : packed
}

function keep(value: string): string {
  chars = value.length
  return value
}

function copyPlain(value: object, depth: number): unknown {
  if (depth > INLINE_DEPTH || seen.length >= INLINE_OBJECTS || seen.includes(value)) return UNSUITABLE
  seen.push(value)
  if (Array.isArray(value)) {
    // Too many, and the length alone shows it.
    if (value.length > INLINE_OBJECTS && typeof value[0] === 'object') return UNSUITABLE
    const copy: unknown[] = []
    for (let i = 0; i < value.length; i++) {
      // A hole is not an undefined: leave arrays with holes to v8.
      if (value[i] === undefined && !(i in value)) return UNSUITABLE
      const item = copyAny(value[i], depth)
      if (item === UNSUITABLE) return UNSUITABLE
      copy[i] = item
    }
    chars += 8 * value.length
    return Object.keys(value).length === value.length ? copy : UNSUITABLE
  }
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype) return UNSUITABLE
  const copy: Record<string, unknown> = {}
  for (const key in value) {
    if (key === '__proto__') return UNSUITABLE
    const item = copyAny((value as Record<string, unknown>)[key], depth)
    if (item === UNSUITABLE) return UNSUITABLE
    copy[key] = item
    chars += key.length + 8
  }
  return chars > INLINE_CHARS ? UNSUITABLE : copy
}

function copyAny(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      chars += value.length
      return value
    case 'object':
      return value === null ? null : copyPlain(value, depth + 1)
    case 'function':
    case 'symbol':
      return UNSUITABLE
    default:
      return isLong(value) ? UNSUITABLE : value
  }
}

/** A longer BigInt is serialized on its own: that counts its bytes, and refuses it if it is too long. */
const LONG = 1n << 64n
const isLong = (value: unknown) => typeof value === 'bigint' && (value >= LONG || value <= -LONG)

/** A boxed string: the box is the mark. */
type JsonText = InstanceType<typeof String>

function packLarge(value: unknown, packRest: (value: unknown) => Uint8Array = packBytes): Uint8Array | JsonText {
  return isExactJson(value) ? checkSize(value, () => new String(JSON.stringify(value))) : packRest(value)
}

/** The bytes of v8's serialization. Throws if the other end would refuse them. */
export const packBytes = (value: unknown): Uint8Array => checkSize(value, () => scanned(serializeAll(value)))

function scanned(bytes: Uint8Array): Uint8Array {
  const reason = scanV8(bytes)
  if (reason !== undefined) throw new NotPackable(reason)
  return bytes
}

function checkSize<P extends Uint8Array | JsonText>(value: unknown, make: () => P): P {
  let packed: P
  try {
    packed = make()
  } catch (error) {
    if (error instanceof NotPackable) throw error
    const { message } = error as Error
    const reason = message === 'Invalid string length' ? tooLarge(`more than ${MAX_VALUE_BYTES} bytes`) : message
    throw new NotPackable(whyNotSendable(value, MAX_DEPTH) ?? reason)
  }
  const size = lastPackedSize(packed)
  if (size > MAX_VALUE_BYTES) throw new NotPackable(tooLarge(`${size} bytes`))
  return packed
}

export const tooLarge = (size: string): string =>
  `it takes ${size}, and at most ${MAX_VALUE_BYTES} can be sent; pass a path or a key instead`

/** v8 would send some objects as empty objects, without an error. */
function serializeAll(value: unknown, maxDepth = MAX_DEPTH): Uint8Array {
  const reason = whyNotSendable(value, maxDepth)
  if (reason !== undefined) throw new NotPackable(reason)
  return serialize(value)
}

const JSON_DEPTH = 64
/** How deep JSON text may be nested: as deep as `isExactJson` allows, and a list around it. */
export const MAX_JSON_LEVELS: number = JSON_DEPTH + 1
/** A graph in which many paths lead to one object would grow without end as text. */
const JSON_VALUES = 1_000_000
let values = 0

/** Whether JSON restores this exactly: plain data without undefined, -0, NaN, holes or cycles. */
export function isExactJson(value: unknown): boolean {
  values = 0
  return isJson(value, 0)
}

/** How many objects `isExactJson` looked at last. */
export const lastCheckedObjects = (): number => values

function isJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return value - value === 0 && (value !== 0 || 1 / value > 0)
    case 'object':
      return value === null || (depth < JSON_DEPTH && ++values < JSON_VALUES && isJsonObject(value, depth))
    default:
      return false
  }
}

function isJsonObject(value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isJson(value[i], depth + 1)) return false
    // An array may have extra properties, like the result of a RegExp. Checked only near the top, because it takes time.
    return depth > 1 || Object.keys(value).length === value.length
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const key in value) if (!isJson((value as Record<string, unknown>)[key], depth + 1)) return false
  return true
}
