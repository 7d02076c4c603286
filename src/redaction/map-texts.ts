import { types } from 'node:util'

export interface TextMap {
  text(text: string): string
  /** Returns the bytes with secrets replaced; the same object if there are none. */
  bytes(bytes: Uint8Array): Uint8Array
}

const ERROR_FIELDS = ['message', 'stack', 'cause'] as const
const isErrorField = (key: string) => (ERROR_FIELDS as readonly string[]).includes(key)

/** The classes of errors that v8 restores. */
const ERRORS = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError] as const

/**
 * Copies a value and maps every text in it: also keys of objects and Maps, messages and stacks of errors, sources of regular
 * expressions, and the bytes of buffers. Everything else stays the same, including cycles and shared objects. Returns the value
 * itself if no text changed. For values that can be serialized (`protocol/pack.ts`).
 */
export function mapTexts(value: unknown, map: TextMap): unknown {
  const copier = new Copier(map)
  const copy = copier.copy(value)
  return copier.changed ? copy : value
}

class Copier {
  readonly #map: TextMap
  /** Copies by original, so that cycles end and shared objects stay shared. */
  readonly #copies = new Map<object, object>()
  changed = false

  constructor(map: TextMap) {
    this.#map = map
  }

  copy(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value)
    if (typeof value !== 'object' || value === null) return value
    const known = this.#copies.get(value)
    if (known) return known
    if (Array.isArray(value)) return this.#array(value)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) return this.#fields(value, this.#made(value, {}))
    if (types.isMap(value)) return this.#mapOf(value)
    if (types.isSet(value)) return this.#setOf(value)
    if (types.isNativeError(value)) return this.#error(value)
    if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return this.#bytes(value)
    if (types.isStringObject(value)) return this.#made(value, new String(this.#text(value.valueOf())))
    if (types.isRegExp(value)) return this.#regExp(value)
    if (types.isDate(value) || types.isBoxedPrimitive(value)) return value
    return this.#fields(value, this.#made(value, {}))
  }

  #text(text: string): string {
    const mapped = this.#map.text(text)
    if (mapped !== text) this.changed = true
    return mapped
  }

  #made<T extends object>(original: object, copy: T): T {
    this.#copies.set(original, copy)
    return copy
  }

  #array(list: readonly unknown[]): unknown[] {
    // Long lists of numbers are common and have no texts.
    if (isAllNumbers(list)) return this.#made(list, list as unknown[])
    const copy = this.#made(list, [] as unknown[])
    copy.length = list.length
    // Copy by keys: an array may have holes, named properties, and a length far beyond its elements.
    this.#fields(list, copy)
    return copy
  }

  #fields(object: object, copy: object): object {
    const isList = Array.isArray(object)
    const isError = types.isNativeError(object)
    for (const key of Object.keys(object)) {
      if (isError && isErrorField(key)) continue
      const item = this.copy((object as Record<string, unknown>)[key])
      const name = isList && isPlace(key) ? key : free(this.#text(key), (taken) => Object.hasOwn(copy, taken))
      // Like an assignment, except for `__proto__`.
      Object.defineProperty(copy, name, { value: item, enumerable: true, writable: true, configurable: true })
    }
    return copy
  }

  #mapOf(map: ReadonlyMap<unknown, unknown>): object {
    const copy = this.#made(map, new Map<unknown, unknown>())
    for (const [key, item] of map) {
      const own = this.copy(key)
      copy.set(typeof own === 'string' ? free(own, (taken) => copy.has(taken)) : own, this.copy(item))
    }
    return copy
  }

  #setOf(set: ReadonlySet<unknown>): object {
    const copy = this.#made(set, new Set<unknown>())
    for (const item of set) copy.add(this.copy(item))
    return copy
  }

  #error(error: Error): object {
    const Kind = ERRORS.find(({ prototype }) => Object.getPrototypeOf(error) === prototype) ?? Error
    const copy = this.#made(error, new Kind())
    for (const key of ERROR_FIELDS) {
      // The new error has its own stack, which points here.
      if (!Object.hasOwn(error, key)) delete copy[key]
      else Object.defineProperty(copy, key, { value: this.copy(error[key]), writable: true, configurable: true })
    }
    return this.#fields(error, copy)
  }

  #bytes(value: ArrayBufferView | ArrayBufferLike): object {
    const bytes = ArrayBuffer.isView(value)
      ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
      : new Uint8Array(value)
    const mapped = this.#map.bytes(bytes)
    if (mapped === bytes) return this.#made(value, value)
    this.changed = true
    const { buffer } = Uint8Array.from(mapped)
    if (!ArrayBuffer.isView(value)) return this.#made(value, buffer)
    if (Buffer.isBuffer(value)) return this.#made(value, Buffer.from(buffer))
    const View = value.constructor as new (buffer: ArrayBuffer) => ArrayBufferView
    return this.#made(value, new View(buffer))
  }

  /** Maps the source of a regular expression. The result need not be a valid expression. */
  #regExp(regExp: RegExp): unknown {
    const source = this.#text(regExp.source)
    if (source === regExp.source) return regExp
    const escaped = source.replaceAll(/[[\]]/g, '\\$&')
    try {
      return this.#made(regExp, new RegExp(escaped, regExp.flags))
    } catch {
      return source
    }
  }
}

/** Two keys may become equal. The second gets a number, so that no value is lost. */
function free(key: string, isTaken: (key: string) => boolean): string {
  let name = key
  for (let count = 2; isTaken(name); count++) name = `${key} (${count})`
  return name
}

const isPlace = (key: string) => /^\d+$/.test(key)

function isAllNumbers(list: readonly unknown[]): boolean {
  // Stops at the first hole.
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== 'number') return false
  return Object.keys(list).length === list.length
}
