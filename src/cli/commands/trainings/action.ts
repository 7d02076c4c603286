import { runFolder } from '../../../store/find-run.ts'
import { summarizeTrainings } from '../../../store/trainings/stored-training.ts'
import { columnsOf } from '../../../text/columns.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { jsonLine } from '../../../text/json.ts'
import { wantsColor } from '../../../text/paint.ts'
import { linesOf } from './lines.ts'
import { renderTrainings } from './render.ts'
import type { TrainingsArgs } from './spec.ts'

/** Lists recorded trainings. */
export async function run({ dir, json, limit }: TrainingsArgs): Promise<number> {
  const folder = runFolder(dir)
  const rows = linesOf(
    summarizeTrainings(folder)
      .reverse()
      .slice(0, limit ?? Number.POSITIVE_INFINITY),
  )
  if (json) for (const row of rows) process.stdout.write(`${jsonLine(row)}\n`)
  else if (rows.length === 0) process.stderr.write(`no trainings in ${escapeControls(folder)}\n`)
  else process.stdout.write(`${renderTrainings(rows, layout())}\n`)
  return rows.some(({ status }) => status === 'unreadable') ? 1 : 0
}

const layout = () => ({
  color: wantsColor(process.stdout),
  width: columnsOf(process.stdout),
  now: Date.now(),
})
