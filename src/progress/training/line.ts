import { firstLine } from '../../text/escape-controls.ts'
import type { Paint } from '../../text/paint.ts'
import { clock, count, rate } from '../../text/quantities.ts'
import { type Field, fieldLine } from '../field-line.ts'
import { curveText, evaluationText, valueText } from './figure-text.ts'
import type { TrainingProgress } from './tally.ts'

/** The number of updates in the sparkline. */
const SHOWN_UPDATES = 16

interface Layout {
  readonly width: number
  readonly paint: Paint
  readonly bar: boolean
  /** A name for the training, if there are several. */
  readonly label?: string | undefined
}

/** One line with the progress of a training. */
export function trainingLine(progress: TrainingProgress, { width, paint, bar, label }: Layout): string {
  const { what, done, total } = progress
  return fieldLine(fieldsOf(progress, label), {
    ...{ width, paint },
    bar: bar && what !== undefined ? { done, total } : undefined,
  })
}

/** The fields, in the order in which they are shown. */
function fieldsOf(progress: TrainingProgress, label: string | undefined): Field[] {
  const { what, done, total, perSecond, epoch, epochs, curve, measure, validation, etaMs } = progress
  const last = curve.at(-1)
  const recent = curve.slice(-SHOWN_UPDATES)
  const judged = validation && evaluationText(validation.summary)
  const fields: (Field | undefined)[] = [
    { text: epoch === 0 ? 'before epoch 1' : `epoch ${count(epoch)}${ofAll(epochs)}`, rank: 0 },
    label === undefined ? undefined : { text: firstLine(label), rank: 6, format: 'bold' },
    what === undefined ? undefined : { text: `${firstLine(what)}: ${count(done)}/${count(total)}`, rank: 1 },
    perSecond === undefined ? undefined : { text: rate(perSecond), rank: 5 },
    last === undefined
      ? undefined
      : {
          text: `${measure} ${valueText(last, measure)} ${curveText(recent, measure, SHOWN_UPDATES)}`,
          rank: 2,
          format: 'green',
        },
    judged === undefined ? undefined : { text: `validation ${judged}`, rank: 4 },
    etaMs === undefined ? undefined : { text: `ETA ${clock(etaMs)}`, rank: 3, format: 'cyan' },
  ]
  return fields.filter((field) => field !== undefined)
}

const ofAll = (epochs: number): string => (Number.isFinite(epochs) ? `/${count(epochs)}` : '')
