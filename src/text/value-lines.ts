import { inspect, stripVTControlCharacters, types } from 'node:util'
import { isConversation, messageLines } from './conversation.ts'
import { escapeControls } from './escape-controls.ts'
import { inline } from './inline.ts'
import type { Paint } from './paint.ts'
import { count, counted } from './quantities.ts'
import { cut, displayWidth } from './width.ts'
import { wrap } from './wrap.ts'

const TEXT_LENGTH = 1500
const ITEMS = 20
/** The most items of a value that are shown in total: a small graph can have an exponential number of paths. */
const NODES = 2000
const FULL_NODES = 500_000
/** The most characters of one text that `--full` shows. */
const FULL_TEXT_LENGTH = 20_000_000
/** A value is not laid out if its nesting leaves fewer columns than this. */
const NARROWEST = 16
/** Texts that are quoted, because they look like a number or another primitive, or are blank. */
const LOOKS_DIFFERENT = /^(\s*|true|false|null|undefined|NaN|-?[\d.]+(e[+-]?\d+)?n?)$/
const INDENT = '  '

export interface ValueLayout {
  readonly width: number
  readonly paint: Paint
  /** Do not shorten long values. */
  readonly full: boolean
}

interface Place extends ValueLayout {
  /** The objects that contain this value. */
  readonly above: readonly object[]
  readonly left: { nodes: number }
}

/** Any value as lines for a terminal: texts and conversations in readable form, other values field by field. */
export const valueLines = (value: unknown, layout: ValueLayout): string[] =>
  linesOf(value, { ...layout, above: [], left: { nodes: layout.full ? FULL_NODES : NODES } })

/** A value with its name: on the same line if it fits, otherwise below. */
export const labelledLines = (label: string, value: unknown, layout: ValueLayout): string[] =>
  labelled(label, value, { ...layout, above: [], left: { nodes: layout.full ? FULL_NODES : NODES } })

/** A text without quotes or escapes, cut if it is long. */
export function textLines(text: string, { width, paint, full }: ValueLayout): string[] {
  const shown = text.slice(0, full ? FULL_TEXT_LENGTH : TEXT_LENGTH)
  const lines = wrap(escapeControls(shown), Math.max(2, width))
  if (shown.length === text.length) return lines
  return [...lines, paint('dim', cut(`… (${count(text.length)} characters${full ? '' : ', --full shows all'})`, width))]
}

function linesOf(value: unknown, place: Place): string[] {
  if (typeof value === 'string' && !LOOKS_DIFFERENT.test(value)) return textLines(value, place)
  if (value === null || typeof value !== 'object') return wrap(inline(value), Math.max(2, place.width))
  if (place.above.includes(value)) return ['[circular]']
  if (place.left.nodes-- <= 0) return [place.paint('dim', '…')]
  const inside = { ...place, above: [...place.above, value] }
  if (isConversation(value) && place.width >= NARROWEST)
    return someOf(value, value.length, place, (message) =>
      messageLines(message, place.paint, (label, part) =>
        (label === undefined ? linesOf(part, narrower(inside)) : labelled(label, part, narrower(inside))).map(indent),
      ),
    )
  if (types.isBoxedPrimitive(value)) return linesOf(value.valueOf(), inside)
  const short = inline(value, place.width)
  if (short !== undefined) return [short]
  if (place.width < NARROWEST) return tooDeep(value, place)
  if (types.isAnyArrayBuffer(value) || types.isUint8Array(value)) return bytesLines(value, place)
  const bullet = (item: unknown) => bulleted(linesOf(item, narrower(inside)))
  if (Array.isArray(value)) return someOf(places(value), value.length, place, bullet)
  if (types.isSet(value)) return someOf(value, value.size, place, bullet)
  if (types.isMap(value))
    return someOf(value, value.size, place, ([key, item]) =>
      labelled(inline(key, place.width / 2) ?? '…', item, inside),
    )
  if (types.isNativeError(value)) return textLines(inspect(value, { depth: 0 }), place)
  if (ArrayBuffer.isView(value) || types.isProxy(value)) return wrap(escapeControls(inspect(value)), place.width)
  const keys = Object.keys(value)
  return someOf(keys, keys.length, place, (key) => labelled(key, (value as Record<string, unknown>)[key], inside))
}

/** The items of an array, up to the first long gap; the rest is only counted. */
function* places(items: readonly unknown[]): Generator<unknown> {
  let empty = 0
  for (let i = 0; i < items.length && empty < ITEMS; i++) {
    empty = i in items ? 0 : empty + 1
    yield items[i]
  }
}

function labelled(label: string, value: unknown, place: Place): string[] {
  const name = escapeControls(label).replaceAll('\n', '\\n')
  const lines = linesOf(value, narrower(place))
  const [first = '', ...more] = lines
  const width = displayWidth(`${name}: ${stripVTControlCharacters(first)}`)
  if (more.length === 0 && width <= place.width) return [`${place.paint('cyan', `${name}:`)} ${first}`]
  return [...wrap(`${name}:`, place.width).map((row) => place.paint('cyan', row)), ...lines.map(indent)]
}

function someOf<T>(
  items: Iterable<T>,
  size: number,
  { full, paint, left, width }: Place,
  lines: (item: T) => string[],
): string[] {
  const shown: string[] = []
  let place = 0
  for (const item of items) {
    if ((!full && place >= ITEMS) || left.nodes-- <= 0) break
    place++
    // Not `push(...lines)`: there may be more lines than a call can have arguments.
    for (const line of lines(item)) shown.push(line)
  }
  const rest = size - place
  if (rest === 0) return shown
  return [...shown, paint('dim', cut(`… (${count(rest)} more${full ? '' : ', --full shows all'})`, width))]
}

function tooDeep(value: object, { width, full }: Place): string[] {
  const text = inline(value)
  return full ? wrap(text, Math.max(2, width)) : [cut(text, width)]
}

function bytesLines(value: ArrayBufferLike | Uint8Array, { width }: Place): string[] {
  const all = value instanceof Uint8Array ? value : new Uint8Array(value)
  const start = Buffer.from(all.subarray(0, 64))
    .toString('hex')
    .replace(/..(?=.)/g, '$& ')
  return wrap(`${counted(all.length, 'byte')}: ${start}${all.length > 64 ? ' …' : ''}`, width)
}

const narrower = <P extends Place>(place: P): P => ({ ...place, width: place.width - INDENT.length })
const indent = (line: string): string => INDENT + line
const bulleted = (lines: readonly string[]): string[] =>
  lines.map((line, place) => (place === 0 ? '- ' : INDENT) + line)
