import { inspect } from 'node:util'
import { visible } from './visible.ts'
import { displayWidth } from './width.ts'

/** What holds more than this does not fit on a line anyway, and is not tried. */
const MAX_NODES = 60

/** A value on one line; given a width, undefined if it does not fit, or if there is text of several lines in it. */
export function inline(value: unknown): string
export function inline(value: unknown, width: number): string | undefined
export function inline(value: unknown, width = Number.POSITIVE_INFINITY): string | undefined {
  if (width !== Number.POSITIVE_INFINITY && nodes(value) > MAX_NODES) return undefined
  const text = inspect(value, { depth: MAX_NODES, breakLength: Number.POSITIVE_INFINITY, compact: true, sorted: false })
  // An escaped line end; a raw one stands in the stack of an error.
  if (width !== Number.POSITIVE_INFINITY && (text.includes('\\n') || text.includes('\n'))) return undefined
  const safe = visible(text)
  return displayWidth(safe) <= width ? safe : undefined
}

/** Counts up to the limit and a little more. */
function nodes(value: unknown): number {
  const open = [value]
  let seen = 0
  while (open.length > 0 && seen <= MAX_NODES) {
    const next = open.pop()
    seen++
    if (typeof next !== 'object' || next === null) continue
    const inside = Array.isArray(next) || ArrayBuffer.isView(next) ? undefined : contents(next)
    const length = inside?.length ?? (next as ArrayLike<unknown>).length ?? 0
    if (length > MAX_NODES) return length
    open.push(...(inside ?? Array.from(next as ArrayLike<unknown>)))
  }
  return seen
}

const contents = (value: object): unknown[] =>
  value instanceof Map ? [...value].flat(1) : value instanceof Set ? [...value] : Object.values(value)
