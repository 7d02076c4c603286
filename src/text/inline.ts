import { inspect, types } from 'node:util'
import { bigintText } from './bigint-text.ts'
import { escapeControls } from './escape-controls.ts'
import { displayWidth } from './width.ts'

/** Longer than a line of any terminal. */
const LINE_CHARS = 4000
/** Real text has fewer code units per column. */
const UNITS_PER_COLUMN = 20
const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/

/** A line under construction. `left`: how many more characters fit; the rest is left out. */
interface Line {
  left: number
  readonly above: Set<object>
}

/**
 * A value on one line, as `inspect` shows it. With a width: undefined if it does not fit, or if it contains a text of
 * several lines.
 */
export function inline(value: unknown): string
export function inline(value: unknown, width: number): string | undefined
export function inline(value: unknown, width = Number.POSITIVE_INFINITY): string | undefined {
  const line: Line = { left: Math.min(LINE_CHARS, UNITS_PER_COLUMN * width), above: new Set() }
  const text = textOf(value, line)
  if (width === Number.POSITIVE_INFINITY) return escapeControls(text)
  // Line feeds are escaped in texts, and raw in the stack of an error.
  if (line.left <= 0 || text.includes('\\n') || text.includes('\n')) return undefined
  const safe = escapeControls(text)
  return displayWidth(safe) <= width ? safe : undefined
}

function textOf(value: unknown, line: Line): string {
  if (typeof value === 'string') return within(inspect(value.slice(0, line.left)), line)
  if (typeof value === 'bigint') return within(`${bigintText(value)}n`, line)
  if (typeof value !== 'object' || value === null) return within(inspect(value), line)
  if (line.above.has(value)) return within('[circular]', line)
  line.above.add(value)
  try {
    return objectText(value, line)
  } finally {
    line.above.delete(value)
  }
}

function objectText(value: object, line: Line): string {
  if (Array.isArray(value)) return enclosed('[', arrayTexts(value, line), ']')
  if (types.isMap(value)) return enclosed(`Map(${value.size}) {`, mapTexts(value, line), '}')
  if (types.isSet(value)) return enclosed(`Set(${value.size}) {`, setTexts(value, line), '}')
  if (types.isBoxedPrimitive(value)) return within(`[${nameOf(value)}: ${textOf(value.valueOf(), line)}]`, line)
  if (types.isNativeError(value)) return within(String(value.stack ?? value.message), line)
  if (types.isRegExp(value)) return within(String(value), line)
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value) || types.isDate(value))
    return within(inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, compact: true }), line)
  return enclosed('{', fieldTexts(value as Record<string, unknown>, line), '}')
}

function* arrayTexts(items: readonly unknown[], line: Line): Generator<string> {
  for (let i = 0; i < items.length; i++) {
    if (line.left <= 0) return yield '…'
    let empty = 0
    while (i + empty < items.length && !(i + empty in items) && empty < LINE_CHARS) empty++
    if (empty === LINE_CHARS) return yield `… ${items.length - i} more items`
    if (empty > 0) yield within(`<${empty} empty item${empty === 1 ? '' : 's'}>`, line)
    i += empty
    if (i < items.length) yield textOf(items[i], line)
  }
}

function* mapTexts(map: ReadonlyMap<unknown, unknown>, line: Line): Generator<string> {
  for (const [key, item] of map) {
    if (line.left <= 0) return yield '…'
    yield `${textOf(key, line)} => ${textOf(item, line)}`
  }
}

function* setTexts(set: ReadonlySet<unknown>, line: Line): Generator<string> {
  for (const item of set) {
    if (line.left <= 0) return yield '…'
    yield textOf(item, line)
  }
}

function* fieldTexts(object: Readonly<Record<string, unknown>>, line: Line): Generator<string> {
  for (const key of Object.keys(object)) {
    if (line.left <= 0) return yield '…'
    const name = PLAIN_KEY.test(key) ? within(key, line) : textOf(key, line)
    yield `${name}: ${textOf(object[key], line)}`
  }
}

function enclosed(open: string, texts: Iterable<string>, close: string): string {
  const inside = [...texts]
  return inside.length === 0 ? open + close : `${open} ${inside.join(', ')} ${close}`
}

function within(text: string, line: Line): string {
  const shown = text.length > line.left ? `${text.slice(0, Math.max(0, line.left))}…` : text
  // Separators count too, so that a list of many empty texts comes to an end.
  line.left -= text.length + 2
  return shown
}

const nameOf = (boxed: object): string => Object.prototype.toString.call(boxed).slice('[object '.length, -1)
