/** Deeper than this nobody reads. */
const DEPTH = 12

/** Any value as JSON for people to read, where exact JSON is not possible: Map, Date, bytes, circles, undefined. */
export function readable(value: unknown): string {
  return JSON.stringify(plain(value, [])) ?? '"undefined"'
}

function plain(value: unknown, above: readonly object[]): unknown {
  switch (typeof value) {
    case 'bigint':
      return `${value}n`
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'undefined':
      return undefined
    case 'function':
    case 'symbol':
      return String(value)
    case 'object':
      return value === null ? null : plainObject(value, above)
    default:
      return value
  }
}

function plainObject(value: object, above: readonly object[]): unknown {
  if (above.includes(value)) return '(circle)'
  if (above.length >= DEPTH) return '…'
  const inside = [...above, value]
  const all = (list: Iterable<unknown>) => Array.from(list, (item) => plain(item, inside) ?? null)
  if (Array.isArray(value)) return all(value)
  if (value instanceof Map) return { Map: all(value) }
  if (value instanceof Set) return { Set: all(value) }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof RegExp) return String(value)
  if (value instanceof Error) return { name: value.name, message: value.message, ...entries(value, inside) }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return value.valueOf()
  return entries(value, inside)
}

const entries = (value: object, inside: readonly object[]) =>
  Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, inside)]))
