import type { Paint } from '../text/paint.ts'
import { firstLine } from '../text/visible.ts'
import { padEnd } from '../text/width.ts'
import { wrap } from './layout.ts'
import { GAP } from './table.ts'

const MIN_WIDTH = 10

/** A row of a table whose thing cannot be used. The reason has the rest of the line, and more lines where it needs them. */
export function problemLines(
  name: string,
  problem: string,
  margin: number,
  { room, paint }: { readonly room: number; readonly paint: Paint },
): string[] {
  const start = [padEnd(firstLine(name), margin), ' '.repeat(margin)]
  return wrap(firstLine(problem), Math.max(MIN_WIDTH, room - margin - GAP.length)).map(
    (line, place) => start[Math.min(place, 1)] + GAP + paint('red', line),
  )
}
