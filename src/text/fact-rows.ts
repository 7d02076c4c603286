import type { Paint } from './paint.ts'
import { displayWidth } from './width.ts'
import { wrap } from './wrap.ts'

interface Fact {
  readonly text: string
  readonly color: 'dim' | 'yellow'
}

const SEPARATOR = ' · '

/** Facts in brackets, side by side. Rows are broken between two facts if possible. */
export function factRows(
  facts: readonly Fact[],
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string[] {
  const rows: string[] = []
  let used = Number.POSITIVE_INFINITY
  for (const [place, { text, color }] of facts.entries()) {
    const [open, close] = [place === 0 ? '[' : '· ', place === facts.length - 1 ? ']' : '']
    const wide = displayWidth(text + close)
    if (used + SEPARATOR.length + wide <= width) {
      rows.push(`${rows.pop()}${paint('dim', SEPARATOR)}${paint(color, text)}${paint('dim', close)}`)
      used += SEPARATOR.length + wide
    } else {
      for (const row of wrap(open + text + close, Math.max(2, width))) {
        rows.push(paint(color, row))
        used = displayWidth(row)
      }
    }
  }
  return rows
}
