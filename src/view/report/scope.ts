import { splitOfRun } from '../../store/trainings/training-ids.ts'
import type { RunFigures, RunList, TrainingDetails } from '../api.ts'
import { runFigures } from '../read/figures.ts'
import { runList } from '../read/run-list.ts'
import { trainingDetails } from '../read/training.ts'
import type { Viewer } from '../viewer.ts'

/** What a report is about. */
export interface Scope {
  readonly list: RunList
  readonly figures: Readonly<Record<string, RunFigures>>
  readonly trainings: Readonly<Record<string, TrainingDetails>>
  /** Ids of the runs to include, the most important first. */
  readonly runs: readonly string[]
  readonly leftOut: readonly string[]
}

/** The scope of a report: a run, a training, or all runs and trainings, depending on the page that it opens first. */
export async function scopeOf(viewer: Viewer, route: string, signal: AbortSignal): Promise<Scope> {
  const [, kind, name = ''] = /^#\/(run|training)\/([^/?]+)/.exec(route) ?? []
  const id = decodeURIComponent(name)
  if (kind === 'run') return await scopeOfRun(viewer, id, signal)
  return kind === 'training' ? await scopeOfTraining(viewer, id, signal) : await scopeOfAll(viewer, signal)
}

async function scopeOfRun(viewer: Viewer, id: string, signal: AbortSignal): Promise<Scope> {
  using open = viewer.openRun(id)
  const figures = { [id]: await runFigures(open.run, signal) }
  return { list: { runs: [open.run.overview()], trainings: [] }, figures, trainings: {}, runs: [id], leftOut: [] }
}

/**
 * A training has many runs. Only the last update and the evaluations are included, which people look at most; the curves
 * show the others.
 */
async function scopeOfTraining(viewer: Viewer, id: string, signal: AbortSignal): Promise<Scope> {
  const details = await trainingDetails(viewer.place.training(id))
  const evaluated = details.evaluations.map(({ run }) => run).reverse()
  const last = details.updates.at(-1)?.run
  const there = new Set(details.runs)
  const runs = [...new Set([...(last === undefined ? [] : [last]), ...evaluated])].filter((run) => there.has(run))
  const figures: Record<string, RunFigures> = {}
  for (const run of details.runs.filter((one) => splitOfRun(one) === 'train' || runs.includes(one))) {
    using open = viewer.openRun(run)
    figures[run] = await runFigures(open.run, signal)
  }
  const others = details.runs.length - runs.length
  return {
    list: { runs: [], trainings: [details.overview] },
    ...{ figures, trainings: { [id]: details }, runs },
    leftOut: others > 0 ? [`the episodes of ${others} of ${details.runs.length} runs of the training`] : [],
  }
}

async function scopeOfAll(viewer: Viewer, signal: AbortSignal): Promise<Scope> {
  const list = await runList(viewer.place, signal)
  const runs = list.runs.flatMap((run) => ('problem' in run ? [] : [run.runId]))
  const figures: Record<string, RunFigures> = {}
  for (const id of runs) {
    using open = viewer.openRun(id)
    figures[id] = await runFigures(open.run, signal)
  }
  const trainings: Record<string, TrainingDetails> = {}
  for (const training of list.trainings)
    if (!('problem' in training)) trainings[training.id] = await trainingDetails(viewer.place.training(training.id))
  const leftOut = list.trainings.length > 0 ? ['the episodes of trainings'] : []
  return { list, figures, trainings, runs, leftOut }
}
