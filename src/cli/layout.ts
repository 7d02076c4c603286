import { stripVTControlCharacters } from 'node:util'

const NARROWEST = 40
/** Longer lines are hard to read, however wide the terminal is. */
const WIDEST = 100
const INDENT = '  '
const GAP = '  '

/** How wide a text for this stream may be. */
export const widthOf = (stream: NodeJS.WriteStream): number =>
  Math.min(WIDEST, Math.max(NARROWEST, stream.columns ?? WIDEST))

/** How many columns a text takes, colours not counted. */
export const visibleLength = (text: string): number => stripVTControlCharacters(text).length

/** The widths of the columns of a table, the last one left out: it takes what is left of the line. */
export function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const count = Math.max(0, ...rows.map((row) => row.length - 1))
  return Array.from({ length: count }, (_, i) => Math.max(...rows.map((row) => visibleLength(row[i] ?? ''))))
}

/** The lines of a text that is broken between words. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || visibleLength(line) + 1 + visibleLength(word) > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** One row of a table, indented: its last text is wrapped into the room that is left. */
export function tableRow(row: readonly string[], widths: readonly number[], width: number): string[] {
  const padded = widths.map((wide, i) => (row[i] ?? '') + ' '.repeat(wide - visibleLength(row[i] ?? '')) + GAP)
  const start = INDENT + padded.join('')
  const margin = visibleLength(start)
  const [first = '', ...more] = wrap(row.at(-1)!, Math.max(NARROWEST / 2, width - margin))
  return [(start + first).trimEnd(), ...more.map((line) => ' '.repeat(margin) + line)]
}

/** A heading and a table below it; nothing if there are no rows. */
export function section(
  heading: string,
  rows: readonly (readonly string[])[],
  width: number,
  widths: readonly number[] = columnWidths(rows),
): string[] {
  return rows.length === 0 ? [] : [heading, ...rows.flatMap((row) => tableRow(row, widths, width))]
}

/** Blocks of lines with an empty line between them. */
export const page = (blocks: readonly (readonly string[])[]): string =>
  `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`
