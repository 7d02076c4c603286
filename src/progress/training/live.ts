import { escapeControls, oneLine } from '../../text/escape-controls.ts'
import { painter, wantsColor } from '../../text/paint.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { liveRow } from '../live-row.ts'
import { NewAlarms } from './alarms.ts'
import { trainingSummary } from './summary.ts'
import { TrainingTally } from './tally.ts'

/** For a terminal: one live line below all output, and the summary at the end. */
export function liveTraining(
  terminal: NodeJS.WriteStream = process.stderr,
  printers: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr],
): ObserveTraining {
  return (start) => {
    const { trainings, row, hideIfIdle } = liveRow(terminal, printers)
    const color = wantsColor(terminal)
    const paint = painter(color)
    const alarms = new NewAlarms()
    const tally = new TrainingTally(start)
    trainings.add(tally)
    row.show()
    return {
      goal: (goal) => tally.goal(goal),
      run: (...run) => tally.run(...run),
      episode: (runId, restored) => tally.episode(runId, restored),
      update(update) {
        tally.update(update)
        for (const alarm of alarms.of(update)) row.print(paint('yellow', `manyworlds: ${oneLine(alarm)}`))
      },
      evaluation: (evaluation) => tally.evaluation(evaluation),
      epoch: (report) => tally.epoch(report),
      notice: (line) => row.print(paint('dim', `manyworlds: ${escapeControls(line)}`)),
      end(ending) {
        trainings.delete(tally)
        hideIfIdle()
        row.print(trainingSummary(tally, ending, { color, width: terminal.columns }))
      },
    }
  }
}
