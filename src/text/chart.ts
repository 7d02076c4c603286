import { padStart } from './width.ts'

/** Whether the terminal can draw block characters: not without a UTF-8 locale, and not on the Linux console. */
export function drawsBlocks(env: NodeJS.ProcessEnv = process.env): boolean {
  if (env.TERM === 'linux' || env.TERM === 'dumb') return false
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG
  // Without a locale, as in most containers, assume UTF-8, because our other output has non-ASCII characters too.
  return !locale || /utf-?8/i.test(locale)
}

export interface ChartLayout {
  /** Columns of the terminal. */
  readonly width: number
  readonly blocks: boolean
  /** The values at the bottom and the top. */
  readonly low: number
  readonly high: number
  readonly label: (value: number) => string
  /** The labels of the first and the last value. */
  readonly ends: readonly [first: string, last: string]
}

const ROWS = 6
/** The widest bar, for charts with few values. */
const WIDEST_BAR = 4
const FEWEST_COLUMNS = 10

const BLOCKS = { partial: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'], axis: '│', corner: '└', line: '─' } as const
const ASCII = { partial: ['.', ':', '#'], axis: '|', corner: '+', line: '-' } as const

/**
 * Values over time as bars, in a few lines. If there are more values than columns, a column is the mean of several
 * values; `perColumn` returns how many. A missing value (null) leaves its column empty, and a value at the bottom is
 * drawn as the lowest mark.
 */
export function chart(
  values: readonly (number | null)[],
  { width, blocks, low, high, label, ends }: ChartLayout,
): { readonly lines: readonly string[]; readonly perColumn: number } {
  const signs = blocks ? BLOCKS : ASCII
  const labels = Array.from({ length: ROWS }, (_, row) => (row === 0 ? high : row === ROWS - 1 ? low : undefined))
  const shown = labels.map((value) => (value === undefined ? '' : label(value)))
  const margin = Math.max(...shown.map((text) => text.length)) + 1
  const room = Math.max(FEWEST_COLUMNS, width - margin - 1)
  const perColumn = Math.ceil(values.length / room)
  const columns = inColumns(values, perColumn)
  const wide = Math.max(1, Math.min(WIDEST_BAR, Math.floor(room / Math.max(1, columns.length))))
  const heights = columns.map((value) => (value === null ? null : heightOf(value, low, high) * ROWS))
  const lines = shown.map((text, row) => {
    const cells = heights.map((height) => cellAt(height, ROWS - 1 - row, signs.partial).repeat(wide)).join('')
    return `${padStart(text, margin)}${signs.axis}${cells}`.trimEnd()
  })
  const axis = `${' '.repeat(margin)}${signs.corner}${signs.line.repeat(columns.length * wide)}`
  return { lines: [...lines, axis, endsLine(ends, margin + 1, columns.length * wide)], perColumn }
}

/** Values as one line of marks. The scale is from the lowest to the highest value, or `range`. */
export function sparkline(
  values: readonly (number | null)[],
  width: number,
  blocks: boolean,
  range?: readonly [low: number, high: number],
): string {
  const columns = inColumns(values, Math.ceil(values.length / width))
  const known = columns.filter((value) => value !== null)
  const [low, high] = range ?? [Math.min(...known), Math.max(...known)]
  const { partial } = blocks ? BLOCKS : ASCII
  return columns.map((value) => (value === null ? ' ' : partialSign(heightOf(value, low, high), partial))).join('')
}

function inColumns(values: readonly (number | null)[], perColumn: number): (number | null)[] {
  if (perColumn <= 1) return [...values]
  return Array.from({ length: Math.ceil(values.length / perColumn) }, (_, column) => {
    const known = values.slice(column * perColumn, (column + 1) * perColumn).filter((value) => value !== null)
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
  })
}

/** From 0 to 1. If all values are equal, 0.5. */
const heightOf = (value: number, low: number, high: number): number =>
  high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5

/** The character of a bar in a row. `height` is in rows; rows count from the bottom. */
function cellAt(height: number | null, row: number, partial: readonly string[]): string {
  if (height === null) return ' '
  const filled = height - row
  if (row === 0) return partialSign(filled, partial)
  return filled <= 0 ? ' ' : partialSign(filled, partial)
}

/** `share`: the filled part of the row. */
const partialSign = (share: number, partial: readonly string[]): string =>
  partial[Math.min(partial.length - 1, Math.max(0, Math.ceil(share * partial.length) - 1))]!

function endsLine([first, last]: readonly [string, string], margin: number, width: number): string {
  if (first === last || first.length + last.length + 1 > width)
    return `${' '.repeat(margin)}${first === last ? first : `${first} to ${last}`}`
  return `${' '.repeat(margin)}${first}${padStart(last, width - first.length)}`
}
