import type { Paint } from './paint.ts'
import { cut, displayWidth } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly align: (text: string, width: number) => string
  /** If not all columns fit, the one with the highest rank is dropped first. */
  readonly rank: number
  readonly text: (row: Row) => string
  readonly format?: (row: Row) => Parameters<Paint>[0]
  /** If this is the last column, it may shrink to this width before other columns are dropped. */
  readonly narrowest?: number
}

/** A column with its computed width and texts. */
interface Laid<Row> extends Column<Row> {
  readonly texts: readonly string[]
  readonly width: number
}

export const GAP = '  '

/** A table that fits into `room` columns: its head, and a line for each row. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { room, paint }: { readonly room: number; readonly paint: Paint },
): { readonly head: string; readonly lines: readonly string[] } {
  const shown = fitting(
    columns.map((column) => laid(column, rows)),
    room,
  )
  const head = shown.map(({ title, align, width }) => align(title, width))
  const lines = rows.map((row, place) =>
    shown
      .map(({ texts, align, width, format }) => {
        const text = align(cut(texts[place]!, width), width)
        return format ? paint(format(row), text) : text
      })
      .join(GAP)
      .trimEnd(),
  )
  return { head: paint('dim', head.join(GAP).trimEnd()), lines }
}

function laid<Row>(column: Column<Row>, rows: readonly Row[]): Laid<Row> {
  const texts = rows.map((row) => column.text(row))
  return { ...column, texts, width: Math.max(...[column.title, ...texts].map(displayWidth)) }
}

/** Shrinks the last column if it allows that; otherwise drops columns until the rest fits. */
function fitting<Row>(columns: readonly Laid<Row>[], room: number): readonly Laid<Row>[] {
  const tooWide = columns.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length) - room
  if (tooWide <= 0) return columns
  const last = columns.at(-1)!
  const least = columns.length === 1 ? 1 : last.narrowest
  if (least !== undefined && last.width - tooWide >= least)
    return [...columns.slice(0, -1), { ...last, width: last.width - tooWide }]
  const lowest = Math.max(...columns.map(({ rank }) => rank))
  return fitting(
    columns.filter(({ rank }) => rank !== lowest),
    room,
  )
}
