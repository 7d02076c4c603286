import { escapeControls, firstLine } from '../text/escape-controls.ts'
import type { Paint } from '../text/paint.ts'
import { clock, count, counted, percent, rate } from '../text/quantities.ts'
import type { StatusFigures } from './combined.ts'
import { type Field, fieldLine } from './field-line.ts'

interface Layout {
  readonly width: number
  readonly paint: Paint
  /** Add a progress bar if there is room for it. */
  readonly bar: boolean
  /** A name for the runs, if there are several. */
  readonly label?: string | undefined
}

/** One line with the progress of one or more runs, at most `width` columns wide. Fields that do not fit are left out. */
export function statusLine(progress: StatusFigures, { width, paint, bar, label }: Layout): string {
  const { done, total } = progress
  return fieldLine(fieldsOf(progress, label), {
    width,
    paint,
    bar: bar && total !== undefined ? { done, total } : undefined,
  })
}

/** The fields, in the order in which they are shown. */
function fieldsOf(progress: StatusFigures, label: string | undefined): Field[] {
  const { done, total, succeeded, failed, cancelled, running, retries, restored, perSecond, etaMs, waiting } = progress
  const fields: (Field | undefined)[] = [
    { text: total === undefined ? `${count(done)} done` : `${count(done)}/${count(total)}`, rank: 1 },
    label === undefined ? undefined : { text: escapeControls(label).replaceAll('\n', ' '), rank: 7, format: 'bold' },
    total === undefined ? undefined : { text: percent(done, total), rank: 0 },
    { text: `ok ${count(succeeded)}`, rank: 8, format: 'green' },
    failed === 0 ? undefined : { text: `failed ${count(failed)}`, rank: 2, format: 'red' },
    cancelled === 0 ? undefined : { text: `cancelled ${count(cancelled)}`, rank: 11, format: 'dim' },
    { text: `running ${count(running)}`, rank: 6 },
    waiting.length === 0 ? undefined : { text: waitingText(waiting), rank: 4, format: 'yellow' },
    retries === 0 ? undefined : { text: `retries ${count(retries)}`, rank: 9, format: 'yellow' },
    restored === 0 ? undefined : { text: `restored ${count(restored)}`, rank: 10, format: 'dim' },
    perSecond === undefined ? undefined : { text: rate(perSecond), rank: 5 },
    etaMs === undefined ? undefined : { text: `ETA ${clock(etaMs)}`, rank: 3, format: 'cyan' },
  ]
  return fields.filter((field) => field !== undefined)
}

/**
 * `waiting for small: 412 queued, 38/s`: the longest queue, and how many others there are. For a server that has answered
 * nothing yet, the failures instead of the rate.
 */
function waitingText([first, ...others]: StatusFigures['waiting']): string {
  const { model, queued, perSecond, failed = 0, rateLimited = 0 } = first!
  const pace = perSecond > 0 && Number.isFinite(perSecond) ? `, ${rate(perSecond)}` : ''
  const unanswered = [
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(rateLimited > 0 ? [`${count(rateLimited)} rate-limited`] : []),
  ]
  const state = unanswered.length === 0 ? pace : `, no answer yet, ${unanswered.join(', ')}`
  const more = others.length === 0 ? '' : ` (and ${counted(others.length, 'model')} more)`
  return `waiting for ${firstLine(model)}: ${count(queued)} queued${state}${more}`
}
