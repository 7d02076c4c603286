import { isExactJson } from '../protocol/pack.ts'
import { isNumberArray, type NumberArray } from './numbers.ts'

type Path = readonly string[]

/** What a step has in it that is not sent as plain JSON. */
export interface Survey {
  /** Whether JSON brings everything but `numbers` back as it is. */
  readonly exact: boolean
  readonly lists: readonly (readonly [path: Path, list: readonly unknown[]])[]
  readonly numbers: readonly (readonly [path: Path, numbers: NumberArray])[]
}

/** Lists and numbers are looked for so many objects deep; `data.request.messages` is three. */
const DEPTH = 6
/** Fewer numbers than this stay JSON, where people can read them. */
const LEAST_NUMBERS = 8
/** More of either is data rather than a step, and stays as it is. */
const MOST_FOUND = 64

export function survey(fields: object): Survey {
  const lists: [Path, readonly unknown[]][] = []
  const numbers: [Path, NumberArray][] = []
  const path: string[] = []

  const look = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null || path.length > DEPTH) return isExactJson(value)
    if (Array.isArray(value)) {
      if (value.length >= LEAST_NUMBERS && numbers.length < MOST_FOUND && isPlainList(value) && isNumberArray(value)) {
        numbers.push([[...path], value])
        return true
      }
      const exact = isExactJson(value)
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
    let exact = true
    for (const key of Object.keys(object)) {
      path.push(key)
      if (key === '__proto__' || !look(object[key])) exact = false
      path.pop()
    }
    return exact
  }

  return { exact: lookInside(fields as Record<string, unknown>), lists, numbers }
}

/** Without holes, and without properties of its own. */
const isPlainList = (list: readonly unknown[]) => Object.keys(list).length === list.length
