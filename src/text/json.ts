import { types } from 'node:util'
import { bigintText } from './bigint-text.ts'

/** More deeply nested values are cut. */
const MAX_DEPTH = 200
/** Values with more objects are cut: a small graph can have an exponential number of paths. */
const MAX_OBJECTS = 1_000_000
/** Characters before escaping, which turns one into up to six: a string has at most 536 million. */
const MAX_CHARS = 64_000_000
/** The cost, in characters, of a number or another primitive, and of a hole of a sparse array. */
const PRIMITIVE_CHARS = 8
const EMPTY_PLACE_CHARS = 64

interface Budget {
  objects: number
  chars: number
  /** Whether something was left out. */
  cut: boolean
}

/**
 * One line of JSON for any value. Values without a JSON form get a readable one. Values that are too large or too deep
 * are cut, with a note. Never throws.
 */
export const jsonLine = (value: unknown): string =>
  stringify(value, { objects: MAX_OBJECTS, chars: MAX_CHARS, cut: false })

/** The beginning of that line, in a time that is independent of the size of the value. */
export function jsonPreview(value: unknown, chars: number): { readonly text: string; readonly isCut: boolean } {
  const budget = { objects: chars, chars: 2 * chars, cut: false }
  const line = stringify(value, budget)
  if (line.length > chars) return { text: `${line.slice(0, chars)}…`, isCut: true }
  return { text: line, isCut: budget.cut }
}

const stringify = (value: unknown, left: Budget): string =>
  safeJson(JSON.stringify(toJson(value, new Set(), left)) ?? 'null')

/**
 * Characters that JSON does not escape but a terminal interprets: C1 controls (\x9b starts an escape sequence, like ESC
 * [) and bidirectional marks.
 */
const UNSAFE = /[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** The same JSON, safe to print on a terminal. These characters occur only inside strings, where they can be escaped. */
export const safeJson = (json: string): string =>
  json.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

function toJson(value: unknown, above: Set<object>, left: Budget): unknown {
  if (typeof value === 'string') return textWithin(value, left)
  if (typeof value === 'bigint') return textWithin(bigintText(value), left)
  left.chars -= PRIMITIVE_CHARS
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return `[${String(value).slice(0, 80)}]`
  if (typeof value !== 'object' || value === null) return value
  if (above.has(value)) return '[circular]'
  if (above.size >= MAX_DEPTH) return cut('[too deep]', left)
  if (left.objects-- <= 0 || left.chars <= 0) return cut('[too large]', left)
  above.add(value)
  try {
    return objectToJson(value, (child) => toJson(child, above, left), left)
  } catch (error) {
    // A getter or a `toJSON` threw.
    return `[unreadable: ${String(error)}]`
  } finally {
    above.delete(value)
  }
}

function objectToJson(value: object, child: (value: unknown) => unknown, left: Budget): unknown {
  // An array cannot leave an item out, so it becomes null, as in JSON.stringify.
  const item = (value: unknown) => child(value) ?? null
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    // Bytes are written as base64 below; `toJSON` of a Buffer would return an array of numbers.
    if (!(value instanceof Uint8Array)) return child(value.toJSON())
  }
  if (Array.isArray(value)) return list(value, item, left)
  if (value instanceof Error) {
    const { name, message, stack, cause, ...more } = value
    return child({ name, message, stack, cause, ...more })
  }
  if (value instanceof Map) {
    if (everyKeyIsText(value)) return fields(value as Map<string, unknown>, value.size, child, left)
    return some(value, value.size, (pair) => pair.map(item), left)
  }
  if (value instanceof Set) return some(value, value.size, item, left)
  if (value instanceof RegExp) return String(value)
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return base64(new Uint8Array(value), left)
  if (value instanceof Uint8Array || value instanceof DataView)
    return base64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength), left)
  if (ArrayBuffer.isView(value)) return list(value as unknown as ArrayLike<unknown>, item, left)
  if (types.isBoxedPrimitive(value)) return child(value.valueOf())
  const keys = Object.keys(value)
  return fields(namedBy(keys, value as Record<string, unknown>), keys.length, child, left)
}

function list(items: ArrayLike<unknown>, item: (value: unknown) => unknown, left: Budget): unknown[] {
  const shown: unknown[] = []
  for (let i = 0; i < items.length; i++) {
    if (left.chars <= 0) return [...shown, cut(`[${items.length - i} more]`, left)]
    if (items[i] === undefined && !(i in items)) left.chars -= EMPTY_PLACE_CHARS
    shown.push(item(items[i]))
  }
  return shown
}

function some<T>(items: Iterable<T>, size: number, item: (value: T) => unknown, left: Budget): unknown[] {
  const shown: unknown[] = []
  for (const one of items) {
    if (left.chars <= 0) return [...shown, cut(`[${size - shown.length} more]`, left)]
    shown.push(item(one))
  }
  return shown
}

function fields(
  entries: Iterable<readonly [string, unknown]>,
  size: number,
  child: (value: unknown) => unknown,
  left: Budget,
): unknown {
  const shown: [string, unknown][] = []
  for (const [key, value] of entries) {
    if (left.chars <= 0) {
      shown.push(['…', cut(`[${size - shown.length} more]`, left)])
      break
    }
    shown.push([textWithin(key, left), child(value)])
  }
  return Object.fromEntries(shown)
}

function* namedBy(keys: readonly string[], object: Readonly<Record<string, unknown>>): Generator<[string, unknown]> {
  for (const key of keys) yield [key, object[key]]
}

function everyKeyIsText(map: ReadonlyMap<unknown, unknown>): boolean {
  for (const key of map.keys()) if (typeof key !== 'string') return false
  return true
}

function textWithin(text: string, left: Budget): string {
  const room = Math.max(0, left.chars)
  left.chars -= text.length + PRIMITIVE_CHARS
  return text.length <= room ? text : cut(`${text.slice(0, room)}… [${text.length - room} more characters]`, left)
}

function base64(bytes: Uint8Array, left: Budget): string {
  // In base64, three bytes become four characters.
  const shown = bytes.subarray(0, Math.ceil((Math.max(0, left.chars) * 3) / 4))
  left.chars -= Math.ceil((shown.length * 4) / 3)
  const text = `data:application/octet-stream;base64,${Buffer.from(shown.buffer, shown.byteOffset, shown.length).toString('base64')}`
  return shown.length === bytes.length ? text : cut(`${text}… [${bytes.length - shown.length} more bytes]`, left)
}

function cut(mark: string, left: Budget): string {
  left.cut = true
  return mark
}
