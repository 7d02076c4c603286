import { escapeControls } from '../text/escape-controls.ts'
import { wantsColor } from '../text/paint.ts'
import type { ObserveRun } from './observer.ts'
import { summaryText } from './summary.ts'
import { surviveErrors } from './survive-errors.ts'
import { finishedTask, Tally } from './tally.ts'

/** Prints only the summary, at the end of the run. */
export function summaryOnly(stream: NodeJS.WriteStream): ObserveRun {
  surviveErrors(stream)
  return (start) => {
    const tally = new Tally(start)
    return {
      response: (response) => tally.add(finishedTask(response)),
      notRun: (response) => tally.notRun(response),
      retry: () => tally.retried(),
      total: (tasks) => tally.setTotal(tasks),
      notice: (line) => void stream.write(`manyworlds: ${escapeControls(line)}\n`),
      end(ending) {
        const options = { ending, file: start.file, color: wantsColor(stream), width: stream.columns }
        stream.write(`${summaryText(tally, options)}\n`)
      },
    }
  }
}
