/**
 * Serializes values for Python and back. Numbers keep all 64 bits, including NaN, infinities and -0: both languages write
 * the shortest text that reads back as the same number.
 */

/** More deeply nested values are a mistake, or would overflow the stack of a reader. */
const MAX_DEPTH = 500

/** Writes JSON, with NaN and infinities as Python reads them. Throws a TypeError with the path of a value that cannot be sent. */
export function toPython(value: unknown): string {
  return written(value, '', 0)
}

function written(value: unknown, path: string, depth: number): string {
  switch (typeof value) {
    case 'number':
      return number(value)
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
    case 'bigint':
      return String(value)
    case 'undefined':
      return 'null'
    case 'object':
      if (value === null) return 'null'
      if (depth === MAX_DEPTH)
        throw new TypeError(`${path.slice(0, 100)}… is nested more than ${MAX_DEPTH} levels deep`)
      return writtenObject(value, path, depth + 1)
    default:
      throw new TypeError(`${path === '' ? 'it' : path} is a ${typeof value}`)
  }
}

/** Uses an exponent for integers beyond 2^53, which Python would otherwise read as exact integers. */
function number(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value)
}

function writtenObject(value: object, path: string, depth: number): string {
  if (Array.isArray(value))
    return `[${Array.from(value, (item, at) => written(item, `${path}[${at}]`, depth)).join(',')}]`
  if (ArrayBuffer.isView(value)) {
    if (value instanceof DataView) throw new TypeError(`${path === '' ? 'it' : path} is a DataView`)
    return `[${Array.from(value as Float64Array, (item) => written(item, path, depth)).join(',')}]`
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype)
    throw new TypeError(`${path === '' ? 'it' : path} is not plain data (${value.constructor?.name ?? 'an object'})`)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${written(item, `${path}.${key}`, depth)}`).join(',')}}`
}

/** Reads the output of `encoded` in python/world_server.py. */
export function fromPython(text: string): unknown {
  return text.startsWith('~') ? unmarked(JSON.parse(text.slice(1))) : JSON.parse(text)
}

type Marked =
  | { readonly $float: string }
  | { readonly $int: string }
  | { readonly $bytes: string }
  | { readonly $dict: readonly (readonly [string, unknown])[] }

function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked)
  if (typeof value !== 'object' || value === null) return value
  const marked = value as Marked
  if ('$float' in marked) return FLOATS[marked.$float]
  if ('$int' in marked) return BigInt(marked.$int)
  if ('$bytes' in marked) return new Uint8Array(Buffer.from(marked.$bytes, 'base64'))
  return Object.fromEntries(marked.$dict.map(([key, item]) => [key, unmarked(item)]))
}

const FLOATS: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
}
