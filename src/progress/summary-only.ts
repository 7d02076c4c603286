import { wantsColour } from '../text/paint.ts'
import { visible } from '../text/visible.ts'
import type { ObserveRun } from './observer.ts'
import { summaryText } from './summary.ts'
import { surviveErrors } from './survive-errors.ts'
import { finishedTask, Tally } from './tally.ts'

/** Nothing while the run goes on, and the summary at its end. */
export function summaryOnly(stream: NodeJS.WriteStream): ObserveRun {
  surviveErrors(stream)
  return (start) => {
    const tally = new Tally(start)
    return {
      response: (response) => tally.add(finishedTask(response)),
      retry: () => tally.retried(),
      total: (tasks) => tally.setTotal(tasks),
      notice: (line) => void stream.write(`manyworlds: ${visible(line)}\n`),
      end(ending) {
        const options = { ending, file: start.file, colour: wantsColour(stream), width: stream.columns }
        stream.write(`${summaryText(tally, options)}\n`)
      },
    }
  }
}
