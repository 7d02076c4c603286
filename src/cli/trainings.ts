import { runFolder } from '../store/find-run.ts'
import { summarizeTrainings, type TrainingSummary } from '../store/trainings/stored-training.ts'
import { jsonLine } from '../text/json.ts'
import { wantsColour } from '../text/paint.ts'
import { visible } from '../text/visible.ts'
import { renderTrainings, type TrainingLine } from './render-trainings.ts'
import type { TrainingsArgs } from './specs/trainings.ts'

const WIDTH_OF_A_PIPE = 120

/** Lists recorded trainings. */
export async function run({ dir, json, limit }: TrainingsArgs): Promise<number> {
  const folder = runFolder(dir)
  const rows = summarizeTrainings(folder)
    .reverse()
    .slice(0, limit ?? Number.POSITIVE_INFINITY)
    .map(lineOf)
  if (json) for (const row of rows) process.stdout.write(`${jsonLine(row)}\n`)
  else if (rows.length === 0) process.stderr.write(`no trainings in ${visible(folder)}\n`)
  else process.stdout.write(`${renderTrainings(rows, layout())}\n`)
  return rows.some(({ status }) => status === 'unreadable') ? 1 : 0
}

const lineOf = ({ found, overview, problem }: TrainingSummary): TrainingLine =>
  overview ?? { id: found.id, file: found.path, status: 'unreadable', problem: problem.message }

const layout = () => ({
  colour: wantsColour(process.stdout),
  width: process.stdout.columns ?? WIDTH_OF_A_PIPE,
  now: Date.now(),
})
