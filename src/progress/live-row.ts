import { painter, wantsColor } from '../text/paint.ts'
import { BottomRow } from './bottom-row.ts'
import { combined } from './combined.ts'
import { statusLine } from './status-line.ts'
import type { Tally } from './tally.ts'
import { trainingLine } from './training/line.ts'
import type { TrainingTally } from './training/tally.ts'

/** The displays of one terminal. Stored on the stream itself, because a process may have two copies of this package. */
interface Shown {
  readonly runs: Set<Tally>
  readonly trainings: Set<TrainingTally>
  readonly row: BottomRow
  hideIfIdle(): void
}
const SHOWN = Symbol.for('manyworlds.live-row')

/** The row of a terminal, which all concurrent runs and trainings share. */
export function liveRow(
  terminal: NodeJS.WriteStream & { [SHOWN]?: Shown },
  printers: readonly NodeJS.WriteStream[],
): Shown {
  if (terminal[SHOWN]) return terminal[SHOWN]
  const runs = new Set<Tally>()
  const trainings = new Set<TrainingTally>()
  const paint = painter(wantsColor(terminal))
  const text = (width: number) => {
    const layout = { width, paint, bar: true }
    const [training] = trainings
    if (training) {
      const label = trainings.size === 1 ? training.start.sweep && training.start.id : `${trainings.size} trainings`
      return trainingLine(training.snapshot(), { ...layout, label })
    }
    const label = runs.size === 1 ? undefined : `${runs.size} runs`
    return statusLine(combined([...runs].map((tally) => tally.snapshot())), { ...layout, label })
  }
  const row = new BottomRow(terminal, printers, text)
  const hideIfIdle = () => {
    if (runs.size + trainings.size === 0) row.hide()
  }
  return (terminal[SHOWN] = { runs, trainings, row, hideIfIdle })
}
