import { figureText } from '../../../progress/training/figure-text.ts'
import { firstLine } from '../../../text/escape-controls.ts'
import { jsonLine } from '../../../text/json.ts'
import { painterFor } from '../../../text/paint.ts'
import { counted } from '../../../text/quantities.ts'
import { type Column, table } from '../../../text/table.ts'
import { padEnd, padStart } from '../../../text/width.ts'
import type { PointSummary, SweepSummary } from '../../../train/sweep/summary.ts'

const DEFAULT_WIDTH = 100

/** Prints the results of a sweep: a table, or a line of JSON. `out` is undefined if nothing should be printed. */
export function printSweep(sweep: SweepSummary, json: boolean, out: NodeJS.WritableStream | undefined): void {
  if (out === undefined) return
  const { id, ...fields } = sweep
  out.write(json ? `${jsonLine({ type: 'sweep', sweep: id, at: Date.now(), ...fields })}\n` : `${text(sweep, out)}\n`)
}

function text(sweep: SweepSummary, out: NodeJS.WritableStream): string {
  const { id, points, best, trainings, restored } = sweep
  const paint = painterFor(out)
  const figure = (of: 'validation' | 'test') => (point: PointSummary) => {
    const value = point[of]
    return value ? figureText(value, point.measure) : ''
  }
  const columns: Column<PointSummary>[] = [
    { title: 'point', align: padEnd, rank: 0, text: ({ label }) => firstLine(label) || '(base settings)' },
    {
      ...{ title: 'seeds', align: padStart, rank: 2 },
      text: ({ finished, failed }) => (failed === 0 ? `${finished}` : `${finished} (${failed} failed)`),
    },
    { title: 'validation', align: padEnd, rank: 1, text: figure('validation') },
    { title: 'test', align: padEnd, rank: 3, text: figure('test') },
    { title: '', align: padEnd, rank: 4, text: (point) => (point === best ? 'best by validation' : '') },
  ]
  const room = (out as NodeJS.WriteStream).columns || DEFAULT_WIDTH
  const { head, lines } = table(points, columns, { room, paint })
  const stored = restored === 0 ? '' : `, ${restored} of them finished in earlier sessions`
  return [`sweep ${firstLine(id)}: ${counted(trainings, 'training')}${stored}`, head, ...lines].join('\n')
}
