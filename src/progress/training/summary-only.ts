import { escapeControls } from '../../text/escape-controls.ts'
import { wantsColor } from '../../text/paint.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { surviveErrors } from '../survive-errors.ts'
import { trainingSummary } from './summary.ts'
import { TrainingTally } from './tally.ts'

/** Prints only the summary, at the end of the training. */
export function trainingSummaryOnly(stream: NodeJS.WriteStream): ObserveTraining {
  surviveErrors(stream)
  return (start) => {
    const tally = new TrainingTally(start)
    return {
      goal: (goal) => tally.goal(goal),
      run: (...run) => tally.run(...run),
      episode: (runId, restored) => tally.episode(runId, restored),
      update: (row) => tally.update(row),
      evaluation: (row) => tally.evaluation(row),
      epoch: (report) => tally.epoch(report),
      notice: (line) => void stream.write(`manyworlds: ${escapeControls(line)}\n`),
      end: (ending) =>
        void stream.write(`${trainingSummary(tally, ending, { color: wantsColor(stream), width: stream.columns })}\n`),
    }
  }
}
