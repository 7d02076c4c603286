import { types } from 'node:util'

/** Nested deeper than this, or larger in all, a value is cut: a graph can hold more paths than there are atoms. */
const MAX_DEPTH = 200
const MAX_NODES = 1_000_000

/** One line of JSON for any value. What JSON has no form for is given a readable one; nothing makes it fail. */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(toJson(value, new Set(), { nodes: MAX_NODES })) ?? 'null'

function toJson(value: unknown, above: Set<object>, left: { nodes: number }): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return `[${String(value).slice(0, 80)}]`
  if (typeof value !== 'object' || value === null) return value
  if (above.has(value)) return '[circular]'
  if (above.size >= MAX_DEPTH) return '[too deep]'
  if (left.nodes-- <= 0) return '[too large]'
  above.add(value)
  try {
    return objectToJson(value, (child) => toJson(child, above, left))
  } catch (error) {
    // A getter, or a toJSON of the user's own.
    return `[unreadable: ${String(error)}]`
  } finally {
    above.delete(value)
  }
}

function objectToJson(value: object, child: (value: unknown) => unknown): unknown {
  // In an array there is no leaving out, and null is what JSON itself would put there.
  const item = (value: unknown) => child(value) ?? null
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    // A Buffer's own form is an array of numbers.
    if (!(value instanceof Uint8Array)) return child(value.toJSON())
  }
  if (Array.isArray(value)) return value.map(item)
  if (value instanceof Error) {
    const { name, message, stack, cause, ...more } = value
    return child({ name, message, stack, cause, ...more })
  }
  if (value instanceof Map) {
    if ([...value.keys()].every((key) => typeof key === 'string')) return child(Object.fromEntries(value))
    return [...value].map((pair) => pair.map(item))
  }
  if (value instanceof Set) return [...value].map(item)
  if (value instanceof RegExp) return String(value)
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return base64(new Uint8Array(value))
  if (value instanceof Uint8Array || value instanceof DataView)
    return base64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, item)
  if (types.isBoxedPrimitive(value)) return child(value.valueOf())
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, child(field)]))
}

const base64 = (bytes: Uint8Array): string =>
  `data:application/octet-stream;base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')}`
