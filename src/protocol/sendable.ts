/** v8 can write values that are nested twice as deep as it can read. They are refused here, before they are sent. */
export const MAX_DEPTH = 1000
/**
 * The most empty places in all arrays of one value. `x[4e9] = 1` takes 30 bytes in v8's format, but code that reads the array
 * place by place (JSON, a loop, a test for equality) never reaches its end.
 */
const MAX_EMPTY_PLACES = 256 * 1024
/** Properties with names are looked for only in arrays up to this length: listing them takes more memory than the array. */
const MAX_NAMED_LENGTH = 100_000

/** A value that cannot be sent, and the path to it: the innermost key first, because the path is built on the way out. */
interface Problem {
  readonly what: string
  readonly way: ((path: string) => string)[]
}

interface Walk {
  readonly visited: Set<unknown>
  readonly maxDepth: number
  emptyPlaces: number
  tooDeep: boolean
}

/** The path to the first value that cannot be sent, or that would arrive empty; undefined if all can be sent. */
export function whyNotSendable(value: unknown, maxDepth: number = MAX_DEPTH): string | undefined {
  const walk: Walk = { visited: new Set(), maxDepth, emptyPlaces: 0, tooDeep: false }
  const problem = find(value, walk, 0)
  if (problem === undefined) return undefined
  // The path to it would have a thousand steps.
  if (walk.tooDeep) return `it is nested more than ${maxDepth} levels deep`
  const path = problem.way.reduceRight((outer, step) => step(outer), '')
  return `${path === '' ? 'it' : `\`${path}\``} ${problem.what}`
}

function find(value: unknown, walk: Walk, depth: number): Problem | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') return found(`is a ${typeof value}`)
  if (typeof value !== 'object' || value === null || walk.visited.has(value)) return undefined
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof String) return undefined
  walk.tooDeep = depth > walk.maxDepth
  if (walk.tooDeep) return found('')
  walk.visited.add(value)
  if (value instanceof Promise) return found('is a Promise; await it first')
  if (value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef)
    return found(`is a ${value.constructor.name}`)
  if (wouldArriveEmpty(value))
    return found(
      `is a ${value.constructor?.name ?? 'object'} without data of its own, so nothing of it would arrive; send its text or plain data`,
    )
  if (Array.isArray(value)) return inArray(value, walk, depth + 1)
  if (value instanceof Map) return inMap(value, walk, depth + 1)
  if (value instanceof Set) return inSet(value, walk, depth + 1)
  return inFields(value, walk, depth + 1)
}

function inArray(items: readonly unknown[], walk: Walk, depth: number): Problem | undefined {
  for (let i = 0; i < items.length; i++) {
    const item = items[i]
    if (item === undefined && !(i in items) && ++walk.emptyPlaces > MAX_EMPTY_PLACES)
      return found(
        `is an array of ${items.length} places, of which more than ${MAX_EMPTY_PLACES} are empty; send a Map or an object`,
      )
    const problem = find(item, walk, depth)
    if (problem) return inside(problem, field(String(i)))
  }
  return items.length > MAX_NAMED_LENGTH ? undefined : inFields(items, walk, depth)
}

function inMap(map: ReadonlyMap<unknown, unknown>, walk: Walk, depth: number): Problem | undefined {
  for (const [key, item] of map) {
    const problem = find(item, walk, depth)
    if (problem) return inside(problem, (path) => `${path}.get(${show(key)})`)
    const problemOfKey = find(key, walk, depth)
    if (problemOfKey) return inside(problemOfKey, (path) => `a key of ${path || 'the map'}`)
  }
  return undefined
}

function inSet(set: ReadonlySet<unknown>, walk: Walk, depth: number): Problem | undefined {
  for (const item of set) {
    const problem = find(item, walk, depth)
    if (problem) return inside(problem, (path) => `an element of ${path || 'the set'}`)
  }
  return undefined
}

function inFields(value: object, walk: Walk, depth: number): Problem | undefined {
  for (const key of Object.keys(value)) {
    const problem = find((value as Record<string, unknown>)[key], walk, depth)
    if (problem) return inside(problem, field(key))
  }
  // `cause` is sent too, but is not among the keys.
  const problem = value instanceof Error ? find(value.cause, walk, depth) : undefined
  return problem && inside(problem, field('cause'))
}

const found = (what: string): Problem => ({ what, way: [] })
const field = (name: string) => (path: string) => (path === '' ? name : `${path}.${name}`)

function inside(problem: Problem, step: (path: string) => string): Problem {
  problem.way.push(step)
  return problem
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
