import { deserialize } from 'node:v8'
import { MAX_JSON_LEVELS } from './pack.ts'
import { scanV8 } from './scan-v8.ts'
import { isObject } from './shapes.ts'

/** Like `unpack`, for values of another process, which are not trusted: throws on anything that `pack` does not make. */
export function readPacked(packed: unknown): unknown {
  if (typeof packed !== 'object') return packed
  if (packed instanceof String) return readJson(packed.valueOf())
  return packed instanceof Uint8Array ? readBytes(packed) : packed
}

export function readBytes(bytes: Uint8Array): unknown {
  const wrong = scanV8(bytes)
  if (wrong !== undefined) throw new TypeError(`the bytes of a value cannot be read: ${wrong}`)
  return deserialize(bytes)
}

export function readJson(json: string, levels = MAX_JSON_LEVELS): unknown {
  const value: unknown = JSON.parse(json)
  // Check the parsed value: scanning the text would take longer.
  if (isObject(value) && !isWithin(value, levels)) throw new TypeError(`it is nested more than ${levels} levels deep`)
  return value
}

/** Whether JSON data is nested at most this deep. */
function isWithin(value: object, levels: number): boolean {
  if (levels === 0) return false
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object' && item !== null && !isWithin(item, levels - 1)) return false
    }
    return true
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key]
    if (typeof item === 'object' && item !== null && !isWithin(item, levels - 1)) return false
  }
  return true
}

const INLINE_LEVELS = 12

/** Whether `pack` could have made this: for values that the driver passes on without reading them. */
export function isPacked(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof Uint8Array) return scanV8(value) === undefined
  if (!(value instanceof String)) return isPlain(value, INLINE_LEVELS)
  try {
    readJson(value.valueOf())
    return true
  } catch {
    return false
  }
}

function isPlain(value: object, levels: number): boolean {
  if (levels === 0) return false
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const item of Object.values(value))
    if (typeof item === 'object' && item !== null && !isPlain(item, levels - 1)) return false
  return true
}
