import { types } from 'node:util'

/** How many objects and lists are visited; larger values are cut. A small graph can have an exponential number of paths. */
const MOST_OBJECTS = 100_000
/** More deeply nested values cannot be sent to workers anyway. */
const MOST_LEVELS = 1001

let left = 0

/**
 * Returns a text that is equal for two values if and only if they are the same data: JSON with sorted keys. Values without a
 * JSON form are written in a form that is not JSON: `NaN`, `-0`, `undefined`, `1n`, `Date(0)`, `Map[…]`, `Int32Array(…)`.
 */
export function canonical(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return numberText(value)
    case 'object':
      if (value === null) return 'null'
      left = MOST_OBJECTS
      // Nearly all values are plain data, often with sorted keys. For those, JSON.stringify is the fastest.
      if (isSortedJson(value, 0)) return JSON.stringify(value)
      left = MOST_OBJECTS
      return textOf(value, [])
    default:
      return leafText(value)
  }
}

const numberText = (value: number): string => (Object.is(value, -0) ? '-0' : String(value))

const leafText = (value: unknown): string => (typeof value === 'bigint' ? `${value}n` : String(value))

function isSortedJson(value: unknown, level: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return value - value === 0 && (value !== 0 || 1 / value > 0)
    case 'object':
      return value === null || (level < 64 && left-- > 0 && isSortedObject(value, level + 1))
    default:
      return false
  }
}

function isSortedObject(value: object, level: number): boolean {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isSortedJson(value[i], level)) return false
    return true
  }
  // JSON.stringify would call its own `toJSON`.
  if (Object.getPrototypeOf(value) !== Object.prototype || Object.hasOwn(value, 'toJSON')) return false
  let before = ''
  for (const key in value) {
    if (key < before || !isSortedJson((value as Record<string, unknown>)[key], level)) return false
    before = key
  }
  return true
}

/** `above`: the objects that contain this one. */
function textOf(value: unknown, above: object[]): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'number') return numberText(value)
  if (typeof value !== 'object' || value === null) return leafText(value)
  const seen = above.lastIndexOf(value)
  if (seen >= 0) return `Above(${above.length - seen})`
  if (left-- <= 0 || above.length > MOST_LEVELS) return 'Cut'
  above.push(value)
  const text = objectText(value, above)
  above.pop()
  return text
}

function objectText(value: object, above: object[]): string {
  if (Array.isArray(value)) return listText(value, above)
  if (ArrayBuffer.isView(value)) return viewText(value)
  if (types.isAnyArrayBuffer(value)) return `ArrayBuffer(${value.byteLength}:${latin1(new Uint8Array(value))})`
  if (types.isDate(value)) return `Date(${value.getTime()})`
  if (types.isMap(value))
    return `Map[${Array.from(value, ([key, one]) => `${textOf(key, above)}:${textOf(one, above)}`).join()}]`
  if (types.isSet(value)) return `Set[${Array.from(value, (one) => textOf(one, above)).join()}]`
  if (types.isNativeError(value)) return `Error(${textOf([value.name, value.message], above)})`
  if (types.isRegExp(value)) return `RegExp(${textOf([value.source, value.flags], above)})`
  if (types.isBoxedPrimitive(value)) return `Boxed(${textOf(value.valueOf(), above)})`
  return fieldsText(value as Record<string, unknown>, above)
}

function listText(list: readonly unknown[], above: object[]): string {
  let text = '['
  for (let i = 0; i < list.length; i++) {
    if (i > 0) text += ','
    const item = list[i]
    text += item === undefined && !(i in list) ? 'Empty' : textOf(item, above)
  }
  return `${text}]`
}

function fieldsText(object: Readonly<Record<string, unknown>>, above: object[]): string {
  let text = '{'
  let comma = ''
  for (const key of sorted(Object.keys(object))) {
    text += `${comma}${quoted(key)}:${textOf(object[key], above)}`
    comma = ','
  }
  return `${text}}`
}

/** Insertion sort, which is faster than `sort()` for the few keys of most objects. */
function sorted(keys: string[]): string[] {
  if (keys.length > 12) return keys.sort()
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i]!
    let at = i
    for (; at > 0 && keys[at - 1]! > key; at--) keys[at] = keys[at - 1]!
    keys[at] = key
  }
  return keys
}

const PLAIN = /^[ !#-[\]-~]{0,40}$/

/** Quotes a text as JSON does. */
const quoted = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

/** Writes numbers as bytes, which are exact. NaN has many bit patterns, so all are written as one. */
function viewText(view: ArrayBufferView): string {
  const name = types.isTypedArray(view) ? view[Symbol.toStringTag] : 'DataView'
  const isFloat = view instanceof Float64Array || view instanceof Float32Array
  const numbers = isFloat && view.some(Number.isNaN) ? view.map((one) => (Number.isNaN(one) ? Number.NaN : one)) : view
  return `${name}(${view.byteLength}:${latin1(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength))})`
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
