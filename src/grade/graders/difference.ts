import { isDeepStrictEqual } from 'node:util'
import { shown } from './text.ts'

/** A difference between two values, with its path. */
export interface DataDifference {
  /** `answer.items[3].price` */
  readonly path: string
  readonly what: string
}

export interface DifferenceOptions {
  /** Ignore keys that the expected object does not have. */
  readonly ignoreExtra?: boolean
  /** How many differences to find before stopping. */
  readonly limit?: number
}

/** Data may come from a model: deeper or larger values are reported as a difference and not walked. */
const MAX_DEPTH = 100
const MAX_VALUES = 1_000_000

/** The differences between an answer and the expected value: objects by key, lists by position, numbers by value. */
export function differences(answer: unknown, expected: unknown, options: DifferenceOptions = {}): DataDifference[] {
  const { ignoreExtra = false, limit = 5 } = options
  const found: DataDifference[] = []
  let values = 0
  const add = (path: string, what: string) => {
    if (found.length < limit) found.push({ path, what })
  }
  const walk = (a: unknown, b: unknown, path: string, depth: number): void => {
    if (found.length >= limit || same(a, b)) return
    if (depth > MAX_DEPTH) return add(path, `is nested more than ${MAX_DEPTH} levels deep`)
    if (++values > MAX_VALUES) return add(path, `comes after more than ${MAX_VALUES} values`)
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) add(path, `has ${a.length} items, expected ${b.length}`)
      for (let i = 0; i < Math.min(a.length, b.length) && found.length < limit; i++)
        walk(a[i], b[i], `${path}[${i}]`, depth + 1)
    } else if (isRecord(a) && isRecord(b)) {
      for (const key of Object.keys(b)) {
        if (found.length >= limit) return
        if (!Object.hasOwn(a, key)) add(at(path, key), 'is missing')
        else walk(a[key], b[key], at(path, key), depth + 1)
      }
      if (!ignoreExtra)
        for (const key of Object.keys(a)) if (!Object.hasOwn(b, key)) add(at(path, key), 'is not expected')
    } else if (typeof a !== 'object' || !isDeepStrictEqual(a, b)) add(path, `is ${shown(a)}, expected ${shown(b)}`)
  }
  walk(answer, expected, 'answer', 0)
  return found
}

export const firstDifference = (answer: unknown, expected: unknown): DataDifference | undefined =>
  differences(answer, expected, { limit: 1 })[0]

/** Treats 0 and -0 as equal, and NaN as equal to itself. */
const same = (a: unknown, b: unknown) => a === b || Object.is(a, b)

/** Whether the value is an object literal. Dates, Maps and the like cannot be compared by their keys. */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const at = (path: string, key: string) => (/^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${shown(key)}]`)
