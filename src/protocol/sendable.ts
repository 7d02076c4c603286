/** v8 can write what is nested twice as deep as it can read, and the other end must not be the one to find out. */
const MAX_DEPTH = 1000

/** Where in a value the first thing is that cannot travel, or of which nothing would arrive; undefined if all is well. */
export function whyNotSendable(value: unknown, path = '', visited = new Set<unknown>(), depth = 0): string | undefined {
  const at = path === '' ? 'it' : `\`${path}\``
  if (typeof value === 'function' || typeof value === 'symbol') return `${at} is a ${typeof value}`
  if (typeof value !== 'object' || value === null || visited.has(value)) return undefined
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return undefined
  if (depth > MAX_DEPTH) return `it is nested more than ${MAX_DEPTH} levels deep`
  visited.add(value)
  if (value instanceof Promise) return `${at} is a Promise; await it first`
  if (value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef)
    return `${at} is a ${value.constructor.name}`
  if (wouldArriveEmpty(value))
    return `${at} is a ${value.constructor?.name ?? 'object'} without data of its own, so nothing of it would arrive; send its text or plain data`
  for (const [where, item] of inside(value, path)) {
    const reason = whyNotSendable(item, where, visited, depth + 1)
    if (reason !== undefined) return reason
  }
  return undefined
}

function inside(value: object, path: string): [string, unknown][] {
  if (value instanceof Map)
    return [...value].flatMap(([key, item]) => [
      [`${path}.get(${show(key)})`, item],
      [`a key of ${path || 'the map'}`, key],
    ])
  if (value instanceof Set) return [...value].map((item) => [`an element of ${path || 'the set'}`, item])
  return Object.entries(value).map(([key, item]) => [path === '' ? key : `${path}.${key}`, item])
}

const show = (key: unknown) =>
  typeof key === 'string' ? `'${key}'` : typeof key === 'object' ? 'an object' : String(key)

const CLONED = [Map, Set, Date, RegExp, Error, Number, String, Boolean, BigInt, Array]

/** An object of a class that keeps its data where a clone does not see it: URL, Headers, private fields. */
function wouldArriveEmpty(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return false
  if (CLONED.some((known) => value instanceof known) || Object.keys(value).length > 0) return false
  return Object.getOwnPropertyNames(prototype).length > 1
}
