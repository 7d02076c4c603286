import { createRequire } from 'node:module'
import { types } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import type * as Devalue from 'devalue'
import { MAX_BIGINT_BITS, MAX_RESERVED_BYTES } from './scan-v8.ts'

/**
 * The portable codec: devalue's text format, extended so that it restores the same values as v8.
 *
 * Bytes in a message are always v8's serialization of one value (see `pack.ts` and `packed-step.ts`), which the v8 at the other
 * end may not be able to read. So the value is sent as a separate text, and becomes bytes again at the other end. Bytes inside
 * such a value are the user's, and are sent as bytes.
 */
export const portableText = (messages: readonly unknown[]): string => text(messages, MESSAGE_REDUCERS)

export const readPortable = (portable: string): unknown => devalue().parse(portable, MESSAGE_REVIVERS)

const MAX_BIGINT_DIGITS = Math.ceil(MAX_BIGINT_BITS * Math.log10(2)) + 1

let loaded: typeof Devalue | undefined
/** Loaded when first used: nearly all workers use v8's codec, and loading this would slow their start. */
const devalue = () => (loaded ??= createRequire(import.meta.url)('devalue') as typeof Devalue)

type Reducer = (thing: unknown) => unknown
/** As in v8, an object of an unknown class is plain data. */
const OPERATIONS = {
  shapeOf: (thing: object) => ({ kind: 'plain' as const, keys: Object.keys(thing) }),
}

const text = (value: unknown, reducers: Record<string, Reducer>) =>
  devalue().stringify(value, reducers, { operations: OPERATIONS })

const VALUE_REDUCERS: Record<string, Reducer> = {
  Bytes: (thing) => (ArrayBuffer.isView(thing) || types.isArrayBuffer(thing)) && reduceBytes(thing),
  Error: (thing) => types.isNativeError(thing) && reduceError(thing),
  Keyed: (thing) => typeof thing === 'object' && thing !== null && hasUnusualKeys(thing) && reduceKeyed(thing),
}

const VALUE_REVIVERS = { Bytes: reviveBytes, Error: reviveError, Keyed: reviveKeyed, BigInt: reviveBigInt }

const MESSAGE_REDUCERS: Record<string, Reducer> = {
  V8: (thing) => thing instanceof Uint8Array && text(deserialize(thing), VALUE_REDUCERS),
  ...VALUE_REDUCERS,
}

const MESSAGE_REVIVERS = {
  V8: (value: string) => serialize(devalue().parse(value, VALUE_REVIVERS)),
  ...VALUE_REVIVERS,
}

/**
 * With cyclic data, a reviver is called twice: with incomplete data, for the object that refers back, and again when the data
 * is complete. It must return the same object both times.
 */
const made = new WeakMap<object, object>()

function madeFrom<T extends object>(data: object, make: () => T): T {
  let object = made.get(data) as T | undefined
  if (object === undefined) {
    object = make()
    made.set(data, object)
  }
  return object
}

const define = (object: object, key: string, value: unknown, enumerable: boolean) =>
  Object.defineProperty(object, key, { value, enumerable, writable: true, configurable: true })

// ---- bytes

type BytesData = [kind: string, base64: string, maxByteLength?: number]

// Not every Node version has Float16Array.
const VIEWS = new Map(
  [
    'Int8Array',
    'Uint8Array',
    'Uint8ClampedArray',
    'Int16Array',
    'Uint16Array',
    'Float16Array',
    'Int32Array',
    'Uint32Array',
    'Float32Array',
    'Float64Array',
    'BigInt64Array',
    'BigUint64Array',
    'DataView',
  ].map((name) => [name, (globalThis as unknown as Record<string, new (buffer: ArrayBuffer) => unknown>)[name]]),
)

/** The bytes of the view only: the buffer behind it may be a pool with unrelated data. */
function reduceBytes(thing: ArrayBufferView | ArrayBuffer): BytesData {
  if (!ArrayBuffer.isView(thing)) {
    const base64 = Buffer.from(thing).toString('base64')
    return thing.resizable ? ['ArrayBuffer', base64, thing.maxByteLength] : ['ArrayBuffer', base64]
  }
  const kind = Buffer.isBuffer(thing) ? 'Buffer' : Object.prototype.toString.call(thing).slice(8, -1)
  return [kind, Buffer.from(thing.buffer, thing.byteOffset, thing.byteLength).toString('base64')]
}

function reviveBytes([kind, base64, maxByteLength]: BytesData): unknown {
  const bytes = Buffer.from(base64, 'base64')
  if (kind === 'Buffer') return bytes
  if (maxByteLength !== undefined) {
    if (!(maxByteLength <= MAX_RESERVED_BYTES)) throw new TypeError(`a buffer that may grow to ${maxByteLength} bytes`)
    const buffer = new ArrayBuffer(bytes.byteLength, { maxByteLength })
    new Uint8Array(buffer).set(bytes)
    return buffer
  }
  const { buffer } = new Uint8Array(bytes)
  if (kind === 'ArrayBuffer') return buffer
  const View = VIEWS.get(kind)
  if (View === undefined) throw new TypeError(`${kind} is not known here`)
  return new View(buffer)
}

/** devalue has no limit, and parsing a long BigInt takes seconds. */
function reviveBigInt(digits: unknown): bigint {
  if (typeof digits !== 'string' || digits.length > MAX_BIGINT_DIGITS) throw new TypeError('a BigInt that is too long')
  return BigInt(digits)
}

// ---- errors: v8 keeps the standard names, and of the properties only these

interface ErrorData {
  name: string
  message?: string
  stack?: string
  cause?: unknown
}

const ERRORS = new Map<string, ErrorConstructor>(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((kind) => [kind.name, kind]),
)

function reduceError(error: Error): ErrorData {
  // The name first: the object may be made before the other fields have arrived.
  const data: ErrorData = { name: ERRORS.has(error.name) ? error.name : 'Error' }
  if (Object.hasOwn(error, 'message')) data.message = String(error.message)
  if (typeof error.stack === 'string') data.stack = error.stack
  if (Object.hasOwn(error, 'cause')) data.cause = error.cause
  return data
}

function reviveError(data: ErrorData): Error {
  const error = madeFrom(data, () => new (ERRORS.get(data.name) ?? Error)())
  if ('message' in data) define(error, 'message', String(data.message), false)
  // Replace the stack of the new object, which leads to this line.
  define(error, 'stack', data.stack, false)
  if ('cause' in data) define(error, 'cause', data.cause, false)
  return error
}

// ---- keys that devalue leaves out or refuses: those of an array beside its items, and __proto__

type KeyedData = [arrayLength: number, ...keysAndValues: unknown[]]
const NO_ARRAY = -1

function hasUnusualKeys(thing: object): boolean {
  if (!Array.isArray(thing)) return Object.hasOwn(thing, '__proto__')
  // Indexes come first among the keys.
  const last = Object.keys(thing).at(-1)
  return last !== undefined && !isPlace(last)
}

const isPlace = (key: string) => String(Number(key) >>> 0) === key && Number(key) < 2 ** 32 - 1

function reduceKeyed(thing: object): KeyedData | false {
  // v8 keeps no properties of these.
  if (types.isMap(thing) || types.isSet(thing) || types.isDate(thing) || types.isRegExp(thing)) return false
  if (types.isBoxedPrimitive(thing)) return false
  return [Array.isArray(thing) ? thing.length : NO_ARRAY, ...Object.entries(thing).flat(1)]
}

function reviveKeyed(data: KeyedData): object {
  const [length] = data
  const object = madeFrom(data, () => (length === NO_ARRAY ? {} : []))
  for (let at = 1; at < data.length; at += 2) if (at + 1 in data) define(object, String(data[at]), data[at + 1], true)
  if (Array.isArray(object) && object.length < length) lengthen(object, length)
  return object
}

/** Adds holes at the end. The length may be a false claim: after a write to a far index, v8 allocates no memory for the holes. */
function lengthen(array: unknown[], length: number): void {
  array[2 ** 32 - 2] = undefined
  delete array[2 ** 32 - 2]
  array.length = length
}
