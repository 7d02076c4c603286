import { isExactJson, lastCheckedObjects } from '../protocol/pack.ts'
import { isNumberArray, type NumberArray } from './numbers.ts'

type Path = readonly string[]

/** The parts of a step that are not sent as plain JSON. */
export interface Survey {
  /** Whether JSON restores everything but `numbers` exactly. */
  readonly exact: boolean
  readonly lists: readonly (readonly [path: Path, list: readonly unknown[]])[]
  readonly numbers: readonly (readonly [path: Path, numbers: NumberArray])[]
}

/** How deep lists and numbers are searched for; `data.request.messages` has depth 3. */
const DEPTH = 6
/** Shorter arrays of numbers stay JSON, where people can read them. */
const LEAST_NUMBERS = 8
/** The most lists, and the most arrays, that are extracted from a step. */
const MOST_FOUND = 64
/**
 * Objects that refer to each other can have very many paths. If more objects than this would have to be searched or checked,
 * nothing is extracted from the step.
 */
const MOST_SEARCHED = 10_000
const MOST_CHECKED = 1_000_000

/** Finds the lists and the arrays of numbers of a step. */
export function survey(fields: object): Survey {
  const lists: [Path, readonly unknown[]][] = []
  const numbers: [Path, NumberArray][] = []
  const path: string[] = []
  const ancestors: object[] = []
  let searched = 0
  let checked = 0
  let leaveWhole = false

  const isExact = (value: unknown): boolean => {
    const exact = isExactJson(value)
    checked += lastCheckedObjects()
    if (checked > MOST_CHECKED) leaveWhole = true
    return exact
  }

  const look = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null || path.length > DEPTH) return isExact(value)
    if (Array.isArray(value)) {
      if (value.length >= LEAST_NUMBERS && numbers.length < MOST_FOUND && isNumberArray(value) && isPlainList(value)) {
        numbers.push([[...path], value])
        return true
      }
      const exact = isExact(value)
      if (exact && value.length > 0 && lists.length < MOST_FOUND) lists.push([[...path], value])
      return exact
    }
    if (ArrayBuffer.isView(value)) {
      if (numbers.length === MOST_FOUND || !isNumberArray(value)) return false
      numbers.push([[...path], value])
      return true
    }
    return Object.getPrototypeOf(value) === Object.prototype && lookInside(value as Record<string, unknown>)
  }

  const lookInside = (object: Record<string, unknown>): boolean => {
    // Extracting numbers from a circular value would unroll it.
    if (++searched > MOST_SEARCHED || ancestors.includes(object)) leaveWhole = true
    ancestors.push(object)
    let exact = true
    for (const key of Object.keys(object)) {
      if (leaveWhole) return false
      path.push(key)
      if (key === '__proto__' || !look(object[key])) exact = false
      path.pop()
    }
    ancestors.pop()
    return exact
  }

  const exact = lookInside(fields as Record<string, unknown>)
  return leaveWhole ? { exact: isExactJson(fields), lists: [], numbers: [] } : { exact, lists, numbers }
}

/** Listing the keys of a longer array would take more memory than the array. */
const MAX_NAMED_LENGTH = 100_000

/** Whether an array has no named properties, which this encoding would lose. */
const isPlainList = (list: readonly unknown[]) =>
  list.length > MAX_NAMED_LENGTH || Object.keys(list).length === list.length

/** The lists of a step: at least all those that `survey` finds. Call this before arrays of numbers are restored. */
export function listsIn(fields: object): [path: Path, list: unknown[]][] {
  const lists: [Path, unknown[]][] = []
  const path: string[] = []
  let searched = 0
  const look = (object: object) => {
    if (++searched > MOST_SEARCHED) return
    for (const [key, value] of Object.entries(object)) {
      if (typeof value !== 'object' || value === null) continue
      path.push(key)
      if (Array.isArray(value)) {
        if (value.length > 0) lists.push([[...path], value])
      } else if (path.length <= DEPTH && Object.getPrototypeOf(value) === Object.prototype) look(value)
      path.pop()
    }
  }
  look(fields)
  return lists
}
