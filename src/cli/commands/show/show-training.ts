import { ManyworldsError } from '../../../errors.ts'
import type { FoundTraining } from '../../../store/trainings/find-training.ts'
import { StoredTraining } from '../../../store/trainings/stored-training.ts'
import { drawsBlocks } from '../../../text/chart.ts'
import { columnsOf } from '../../../text/columns.ts'
import { jsonLine } from '../../../text/json.ts'
import { runArgument } from '../../../text/own-command.ts'
import { painterFor } from '../../../text/paint.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { changesOf, renderChanges } from '../../render/text-changes.ts'
import { renderTraining } from './render-training.ts'
import type { ShowArgs } from './spec.ts'

const SHOWN = 12
const CHANGED_LINES = 24

/** Shows a training. */
export async function showTraining(found: FoundTraining, args: ShowArgs): Promise<void> {
  const { id, path } = found
  const name = runArgument(id, path)
  using training = StoredTraining.at(found)
  if (args.task !== undefined)
    throw new ManyworldsError(
      'TASK_NOT_FOUND',
      `${id} is a training; name one of its runs to see a task: manyworlds show ${name}.u00000 ${args.task}`,
    )
  for (const [option, isGiven] of Object.entries({
    by: args.by !== undefined,
    failed: args.failed,
    unsolved: args.unsolved,
    logs: args.logs,
  }))
    if (isGiven) throw new UsageError(`--${option} is for runs, but ${id} is a training; name one of its runs`)
  if (args.json) {
    print(jsonLine(everything(training)))
    return
  }
  const view = {
    overview: training.overview(),
    updates: training.updates(),
    evaluations: training.evaluations(),
    runs: training.runsOf(),
  }
  const layout = {
    paint: painterFor(process.stdout),
    width: columnsOf(process.stdout),
    ...{ blocks: drawsBlocks(), limit: args.limit ?? SHOWN, name },
  }
  const { best = 0 } = view.overview
  const changes = await changesOf(training, best, { sentences: true }).catch(() => undefined)
  for (const line of renderTraining(view, layout)) print(line)
  if (changes === undefined) return
  const limit = args.limit ?? CHANGED_LINES
  for (const line of renderChanges(changes, { paint: layout.paint, width: layout.width, limit, version: best }))
    print(line)
}

/** Everything except the members of batches; read those with `StoredTraining`. */
const everything = (training: StoredTraining) => ({
  overview: training.overview(),
  config: training.config(),
  updates: training.updates().map(({ members, ...update }) => ({ ...update, members: members.length })),
  versions: training.versions(),
  evaluations: training.evaluations(),
  runs: training.runsOf(),
})

const print = (text: string) => void process.stdout.write(`${text}\n`)
