import { types } from 'node:util'
import { isExactJson } from '../protocol/pack.ts'
import { setField } from './set-field.ts'

export { setField }

/**
 * Plain JSON that restores any value that a step can hold. Values without a JSON form are objects with the key `$`, which names
 * their type:
 *
 * | value | written as |
 * |---|---|
 * | NaN, infinities, -0, undefined, a hole in a list | `{"$":"NaN"}`, `"Infinity"`, `"-Infinity"`, `"-0"`, `"undefined"`, `"empty"` |
 * | bigint | `{"$":"bigint","value":"12"}` |
 * | Date | `{"$":"Date","value":0}`: milliseconds since 1970; null: an invalid date |
 * | Map, Set | `{"$":"Map","value":[[key, value], …]}`, `{"$":"Set","value":[…]}` |
 * | arrays of numbers, buffers | `{"$":"Int32Array","value":[…]}`; of an ArrayBuffer or a DataView, its bytes |
 * | Error | `{"$":"Error","value":{"name":…,"message":…,"stack":…}}`, with its `cause` if it has one |
 * | RegExp | `{"$":"RegExp","value":["source","flags"]}` |
 * | `new Number(1)` and the like | `{"$":"boxed","value":1}` |
 * | an object or a list that is inside itself | `{"$":"above","value":1}`: the number of levels up |
 * | an object that has the key `$` itself | `{"$":"object","value":{…}}` |
 *
 * Instances of classes are restored as plain objects, as they are when they come from a worker.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A value that cannot be written, or JSON that `toLossless` did not write. */
export class NotLossless extends Error {}

/** A small graph can have an exponential number of paths. */
const MOST_OBJECTS = 10_000_000
/** More deeply nested values cannot be sent to workers anyway. */
export const MOST_LEVELS = 1100
export const ARRAYS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
} as const
export const BIG_ARRAYS = { BigInt64Array, BigUint64Array } as const

let left = 0

export function toLossless(value: unknown): Json {
  if (isExactJson(value) && !hasMark(value)) return value as Json
  left = MOST_OBJECTS
  return write(value, [])
}

/** For exact JSON, which has no cycles. */
function hasMark(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasMark)
  return Object.hasOwn(value, '$') || Object.values(value).some(hasMark)
}

const marked = (mark: string, value?: Json): Json => (value === undefined ? { $: mark } : { $: mark, value })

function write(value: unknown, above: object[]): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return writeNumber(value)
    case 'bigint':
      return marked('bigint', String(value))
    case 'undefined':
      return marked('undefined')
    case 'object':
      return value === null ? null : writeInside(value, above)
    default:
      throw new NotLossless(`cannot write a ${typeof value}`)
  }
}

const writeNumber = (value: number): Json =>
  Number.isFinite(value) ? (Object.is(value, -0) ? marked('-0') : value) : marked(String(value))

function writeInside(value: object, above: object[]): Json {
  const seen = above.lastIndexOf(value)
  if (seen >= 0) return marked('above', above.length - seen)
  if (left-- <= 0) throw new NotLossless(`it has more than ${MOST_OBJECTS} objects`)
  if (above.length > MOST_LEVELS) throw new NotLossless(`it is nested more than ${MOST_LEVELS} levels deep`)
  above.push(value)
  const json = writeObject(value, (inner) => write(inner, above))
  above.pop()
  return json
}

function writeObject(value: object, inside: (value: unknown) => Json): Json {
  if (Array.isArray(value)) return writeList(value, inside)
  if (types.isTypedArray(value)) return writeArray(value)
  if (types.isDataView(value)) return marked('DataView', bytesOf(value.buffer, value.byteOffset, value.byteLength))
  if (types.isAnyArrayBuffer(value)) return marked('ArrayBuffer', bytesOf(value, 0, value.byteLength))
  if (types.isDate(value)) return marked('Date', Number.isNaN(value.getTime()) ? null : value.getTime())
  if (types.isMap(value))
    return marked(
      'Map',
      Array.from(value, ([key, one]) => [inside(key), inside(one)]),
    )
  if (types.isSet(value)) return marked('Set', Array.from(value, inside))
  if (types.isRegExp(value)) return marked('RegExp', [value.source, value.flags])
  if (types.isNativeError(value)) return writeError(value, inside)
  if (types.isBoxedPrimitive(value)) return marked('boxed', inside(value.valueOf()))
  const fields = writeFields(value as Record<string, unknown>, inside)
  return Object.hasOwn(value, '$') ? marked('object', fields) : fields
}

function writeList(list: readonly unknown[], inside: (value: unknown) => Json): Json {
  const items: Json[] = []
  for (let i = 0; i < list.length; i++) items.push(i in list ? inside(list[i]) : marked('empty'))
  return items
}

function writeArray(array: NodeJS.TypedArray): Json {
  const name = array[Symbol.toStringTag]
  if (name in BIG_ARRAYS) return marked(name, Array.from(array as BigInt64Array, String))
  if (!(name in ARRAYS)) throw new NotLossless(`cannot write a ${name}`)
  return marked(name, Array.from(array as Float64Array, writeNumber))
}

function writeError(error: Error, inside: (value: unknown) => Json): Json {
  const { name, message, stack, cause } = error
  return marked('Error', {
    ...{ name, message },
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause: inside(cause) }),
  })
}

function writeFields(
  object: Readonly<Record<string, unknown>>,
  inside: (value: unknown) => Json,
): { [key: string]: Json } {
  const fields: { [key: string]: Json } = {}
  for (const key of Object.keys(object)) setField(fields, key, inside(object[key]))
  return fields
}

const bytesOf = (buffer: ArrayBufferLike, offset: number, length: number): Json =>
  Array.from(new Uint8Array(buffer, offset, length))
