import { count } from './quantities.ts'
import { textLines, type ValueLayout } from './value-lines.ts'
import { cut } from './width.ts'

/** How much is shown of a text. */
export interface Excerpt {
  readonly chars: number
  readonly lines: number
}

/** A cut is moved back to the end of a word, if there is one within this many characters. */
const WORD_CHARS = 40
/** Omitting fewer characters or rows than this is not worth a note. */
const SLACK_CHARS = 80
const SLACK_ROWS = 3

/** The beginning of a text, with a count of what is left out. */
export function excerptLines(text: string, layout: ValueLayout, most: Excerpt): string[] {
  const end = layout.full ? text.length : endOf(text, most)
  if (end === text.length) return textLines(text, layout)
  return [...textLines(text.slice(0, end).trimEnd(), layout), leftOut(text.length - end, 'characters', layout)]
}

function endOf(text: string, { chars, lines }: Excerpt): number {
  let end = Math.min(text.length, chars)
  let at = -1
  for (let line = 0; line < lines; line++) {
    at = text.indexOf('\n', at + 1)
    if (at < 0 || at >= end) break
    if (line === lines - 1) end = at
  }
  if (text.length - end <= SLACK_CHARS && !text.trimEnd().includes('\n', end)) return text.length
  const word = text.slice(end - WORD_CHARS, end).search(/\s\S*$/)
  return word <= 0 || text[end] === '\n' ? end : end - WORD_CHARS + word
}

/** The first of many rows, with a count of the others. */
export function someRows(rows: readonly string[], most: number, layout: ValueLayout): readonly string[] {
  if (layout.full || rows.length <= most + SLACK_ROWS) return rows
  return [...rows.slice(0, most), leftOut(rows.length - most, 'lines', layout)]
}

const leftOut = (number: number, of: string, { paint, width }: ValueLayout): string =>
  paint('dim', cut(`… (${count(number)} more ${of}, --full shows all)`, width))
