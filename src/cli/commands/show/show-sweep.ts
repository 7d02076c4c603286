import { basename, dirname, resolve } from 'node:path'
import { listRuns, runFolder } from '../../../store/find-run.ts'
import { isRunFile } from '../../../store/run-path.ts'
import { listFound } from '../../../store/trainings/find-training.ts'
import { summarizeTrainings } from '../../../store/trainings/stored-training.ts'
import { firstLine } from '../../../text/escape-controls.ts'
import { jsonLine } from '../../../text/json.ts'
import { wantsColor } from '../../../text/paint.ts'
import { counted } from '../../../text/quantities.ts'
import { linesOf } from '../trainings/lines.ts'
import { renderTrainings } from '../trainings/render.ts'
import type { ShowArgs } from './spec.ts'

const WIDTH_OF_A_PIPE = 120

/** Shows the trainings of a sweep, whose ids begin with its name and a dot. False: the name is not that of a sweep. */
export function showSweep({ run, dir, task, json, limit }: ShowArgs): boolean {
  if (isRunFile(run) || task !== undefined) return false
  const folder = run.includes('/') ? resolve(dirname(run)) : runFolder(dir)
  const name = basename(run)
  const isOfSweep = (id: string) => id.startsWith(`${name}.`)
  const trainings = listFound(folder)
  if (trainings.some(({ id }) => id === name) || trainings.filter(({ id }) => isOfSweep(id)).length < 2) return false
  if (listRuns(folder).some(({ runId }) => runId === name)) return false
  const rows = linesOf(summarizeTrainings(folder).filter(({ found }) => isOfSweep(found.id)))
  const shown = rows.slice(0, limit ?? rows.length)
  if (json) for (const row of shown) process.stdout.write(`${jsonLine(row)}\n`)
  else {
    const layout = {
      ...{ color: wantsColor(process.stdout), width: process.stdout.columns ?? WIDTH_OF_A_PIPE },
      now: Date.now(),
    }
    process.stdout.write(
      `sweep ${firstLine(name)}: ${counted(rows.length, 'training')}\n${renderTrainings(shown, layout)}\n`,
    )
  }
  return true
}
