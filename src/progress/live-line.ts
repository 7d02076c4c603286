import { painter, wantsColour } from '../text/paint.ts'
import { visible } from '../text/visible.ts'
import { BottomRow } from './bottom-row.ts'
import { combined } from './combined.ts'
import type { ObserveRun } from './observer.ts'
import { statusLine } from './status-line.ts'
import { summaryText } from './summary.ts'
import { finishedTask, Tally } from './tally.ts'

/** What one terminal shows. It hangs on the stream itself, since a process may hold two copies of this package. */
interface Shown {
  readonly tallies: Set<Tally>
  readonly row: BottomRow
}
const SHOWN = Symbol.for('manyworlds.live-line')

/**
 * For a person at a terminal: one line that is always up to date, below whatever is printed, and the summary at the
 * end. Runs that go on at the same time share the line.
 */
export function liveLine(
  terminal: NodeJS.WriteStream = process.stderr,
  printers: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr],
): ObserveRun {
  return (start) => {
    const { tallies, row } = shownOn(terminal, printers)
    const colour = wantsColour(terminal)
    const tally = new Tally(start)
    tallies.add(tally)
    row.show()
    return {
      response: (response) => tally.add(finishedTask(response)),
      retry: () => tally.retried(),
      total: (tasks) => tally.setTotal(tasks),
      notice: (line) => row.print(painter(colour)('dim', `manyworlds: ${visible(line)}`)),
      end(ending) {
        tallies.delete(tally)
        if (tallies.size === 0) row.hide()
        row.print(summaryText(tally, { ending, file: start.file, colour, width: terminal.columns }))
      },
    }
  }
}

function shownOn(terminal: NodeJS.WriteStream & { [SHOWN]?: Shown }, printers: readonly NodeJS.WriteStream[]): Shown {
  if (terminal[SHOWN]) return terminal[SHOWN]
  const tallies = new Set<Tally>()
  const paint = painter(wantsColour(terminal))
  const text = (width: number) => {
    const progress = combined([...tallies].map((tally) => tally.snapshot()))
    const label = tallies.size === 1 ? undefined : `${tallies.size} runs`
    return statusLine(progress, { width, paint, bar: true, label })
  }
  return (terminal[SHOWN] = { tallies, row: new BottomRow(terminal, printers, text) })
}
