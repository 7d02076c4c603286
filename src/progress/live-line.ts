import { escapeControls } from '../text/escape-controls.ts'
import { painter, wantsColor } from '../text/paint.ts'
import { liveRow } from './live-row.ts'
import type { ObserveRun } from './observer.ts'
import { summaryText } from './summary.ts'
import { finishedTask, Tally } from './tally.ts'

/** For a terminal: one live line below all output, and the summary at the end. Concurrent runs share the line. */
export function liveLine(
  terminal: NodeJS.WriteStream = process.stderr,
  printers: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr],
): ObserveRun {
  return (start) => {
    const { runs, row, hideIfIdle } = liveRow(terminal, printers)
    const color = wantsColor(terminal)
    const tally = new Tally(start)
    runs.add(tally)
    row.show()
    return {
      response: (response) => tally.add(finishedTask(response)),
      notRun: (response) => tally.notRun(response),
      retry: () => tally.retried(),
      total: (tasks) => tally.setTotal(tasks),
      notice: (line) => row.print(painter(color)('dim', `manyworlds: ${escapeControls(line)}`)),
      end(ending) {
        runs.delete(tally)
        hideIfIdle()
        row.print(summaryText(tally, { ending, file: start.file, color, width: terminal.columns }))
      },
    }
  }
}
