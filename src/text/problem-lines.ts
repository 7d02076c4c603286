import { firstLine } from './escape-controls.ts'
import type { Paint } from './paint.ts'
import { GAP } from './table.ts'
import { padEnd } from './width.ts'
import { wrap } from './wrap.ts'

const MIN_WIDTH = 10

/** A row of a table for something that cannot be used: its name, and the reason, wrapped in the rest of the line. */
export function problemLines(
  name: string,
  problem: string,
  margin: number,
  { room, paint }: { readonly room: number; readonly paint: Paint },
): string[] {
  const start = [padEnd(firstLine(name), margin), ' '.repeat(margin)]
  return wrap(firstLine(problem), Math.max(MIN_WIDTH, room - margin - GAP.length), { longWords: 'keep' }).map(
    (line, place) => start[Math.min(place, 1)] + GAP + paint('red', line),
  )
}
