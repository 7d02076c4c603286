import { displayWidth, padEnd } from './width.ts'
import { wrap } from './wrap.ts'

const INDENT = '  '
const GAP = '  '
/** The least width of the last column of a section. */
const MIN_WIDTH = 20

/** The widths of all columns but the last, which takes the rest of the line. */
export function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const count = Math.max(0, ...rows.map((row) => row.length - 1))
  return Array.from({ length: count }, (_, i) => Math.max(...rows.map((row) => displayWidth(row[i] ?? ''))))
}

/** A heading with rows below it, whose last column is wrapped; nothing if there are no rows. */
export function section(
  heading: string,
  rows: readonly (readonly string[])[],
  width: number,
  widths: readonly number[] = columnWidths(rows),
): string[] {
  return rows.length === 0 ? [] : [heading, ...rows.flatMap((row) => sectionRow(row, widths, width))]
}

function sectionRow(row: readonly string[], widths: readonly number[], width: number): string[] {
  const start = INDENT + widths.map((wide, i) => padEnd(row[i] ?? '', wide) + GAP).join('')
  const margin = displayWidth(start)
  const [first = '', ...more] = wrap(row.at(-1)!, Math.max(MIN_WIDTH, width - margin), KEEP)
  return [(start + first).trimEnd(), ...more.map((line) => ' '.repeat(margin) + line)]
}

/** Do not break paths and commands, so that they can be copied. */
const KEEP = { longWords: 'keep' } as const

/** A paragraph of prose. */
export const paragraph = (text: string, width: number): string[] => wrap(text, width, KEEP)

/** Blocks of lines with an empty line between them. */
export const page = (blocks: readonly (readonly string[])[]): string =>
  `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`
