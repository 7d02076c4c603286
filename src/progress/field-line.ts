import type { Paint } from '../text/paint.ts'
import { cut, displayWidth } from '../text/width.ts'

const GAP = '  '
const BAR_MIN = 10
const BAR_MAX = 24

/** A part of a line. */
export interface Field {
  readonly text: string
  /** If not all fields fit, those with the highest rank are left out first. */
  readonly rank: number
  readonly format?: Parameters<Paint>[0]
}

interface Layout {
  readonly width: number
  readonly paint: Paint
  /** Adds a progress bar if there is room for it. */
  readonly bar?: { readonly done: number; readonly total: number } | undefined
}

/** One line, never wider than `width`: fields that do not fit are left out. */
export function fieldLine(fields: readonly Field[], { width, paint, bar }: Layout): string {
  const chosen = choose(fields, width)
  if (chosen.length === 0) return cut(fields[0]!.text, width)
  const used = lineWidth(chosen)
  const texts = chosen.map(({ text, format }) => (format === undefined ? text : paint(format, text)))
  const room = Math.min(BAR_MAX, width - used - GAP.length - 2)
  if (bar && chosen.length === fields.length && room >= BAR_MIN) {
    const filled = Math.floor(room * Math.min(1, bar.done / Math.max(1, bar.total)))
    // Plain ASCII, because some terminals draw block characters two columns wide.
    texts.unshift(`[${paint('green', '#'.repeat(filled))}${paint('dim', '.'.repeat(room - filled))}]`)
  }
  return texts.join(GAP)
}

/** Takes fields by rank while they fit, and stops at the first that does not, so that the line does not flicker. */
function choose(fields: readonly Field[], width: number): Field[] {
  const kept = new Set<Field>()
  for (const field of fields.toSorted((a, b) => a.rank - b.rank)) {
    if (lineWidth([...kept, field]) > width) break
    kept.add(field)
  }
  return fields.filter((field) => kept.has(field))
}

const lineWidth = (fields: readonly Field[]): number =>
  fields.reduce((sum, { text }) => sum + displayWidth(text) + GAP.length, -GAP.length)
