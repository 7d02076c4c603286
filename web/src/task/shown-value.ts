import { setField } from '../../../src/trajectory/set-field.ts'

/** A value without a JSON form, or a hole in a list: shown as this text. */
export class Shown {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

const NUMBERS: Readonly<Record<string, number>> = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 }
const ARRAYS: Readonly<Record<string, { from(list: readonly number[]): object }>> = {
  ...{ Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array },
  ...{ Float32Array, Float64Array },
}
/** Called with the missing and the total number of characters. */
type Cut = (missing: number, of: number) => void
/** Deeper values are not shown. The server writes at most 1,100 levels. */
const MOST_LEVELS = 1200

/**
 * Reads lossless JSON (`trajectory/lossless-json.ts`) for display. Unlike `fromLossless`, it never throws: unknown forms
 * are shown as they are. For a text that the server cut, it returns the beginning, and calls `cut`.
 */
export function readShown(json: unknown, cut: Cut = () => {}, level = 0): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (level > MOST_LEVELS) return new Shown('…')
  const inner = (value: unknown) => readShown(value, cut, level + 1)
  if (Array.isArray(json)) return json.map(inner)
  if (!Object.hasOwn(json, '$')) return fields(json, inner)
  const { $: mark, value } = json as { readonly $: unknown; readonly value?: unknown }
  return readMarked(String(mark), value, json, inner, cut)
}

function readMarked(mark: string, value: unknown, json: object, inner: (value: unknown) => unknown, cut: Cut): unknown {
  if (Object.hasOwn(NUMBERS, mark)) return NUMBERS[mark]
  if (Object.hasOwn(ARRAYS, mark) && Array.isArray(value)) return ARRAYS[mark]!.from(value.map(inner) as number[])
  switch (mark) {
    case 'cut': {
      const text = String(value)
      const { length } = json as { readonly length?: unknown }
      const whole = typeof length === 'number' ? Math.max(length, text.length) : text.length
      cut(whole - text.length, whole)
      return `${text}…`
    }
    case 'undefined':
      return undefined
    case 'empty':
      return new Shown('(empty)')
    case 'bigint':
      return new Shown(`${value}n`)
    case 'Date':
      return new Shown(dateText(value))
    case 'above':
      return new Shown(`(the value ${value} levels up)`)
    case 'object':
      return typeof value === 'object' && value !== null ? fields(value, inner) : json
    case 'RegExp':
      return Array.isArray(value) ? new Shown(`/${value[0]}/${value[1]}`) : json
    case 'boxed':
      return inner(value)
    case 'Map':
    case 'Set':
      return { [mark]: inner(value) }
    case 'Error':
      return inner(value)
    default:
      return fields(json, inner)
  }
}

function dateText(value: unknown): string {
  const date = new Date(typeof value === 'number' ? value : Number.NaN)
  return Number.isNaN(date.getTime()) ? 'Invalid Date' : date.toISOString()
}

function fields(json: object, inner: (value: unknown) => unknown): object {
  const object = {}
  for (const key of Object.keys(json)) setField(object, key, inner((json as Record<string, unknown>)[key]))
  return object
}
