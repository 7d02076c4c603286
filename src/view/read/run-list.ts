import { overviewsOf } from '../../store/overview.ts'
import { trainingSummaries } from '../../store/trainings/stored-training.ts'
import type { RunEntry, RunList, TrainingEntry } from '../api.ts'
import type { Place } from './place.ts'
import { Turns } from './turns.ts'

/** The most runs that a list has: the newest. */
const MOST_RUNS = 5000

/** Reads the list of runs and trainings. One that is damaged does not hide the others. */
export async function runList(place: Place, signal: AbortSignal): Promise<RunList> {
  const found = place.runs().slice(-MOST_RUNS).reverse()
  const runs: RunEntry[] = []
  const ids = new Set<string>()
  const turns = new Turns()
  for (const { found: run, overview, problem } of overviewsOf(found)) {
    if (overview === undefined) runs.push({ runId: run.runId, problem: problem.message })
    // A copy of a run has the same id, so it is found by the name of its file.
    else runs.push(ids.has(overview.runId) ? { ...overview, runId: run.runId } : overview)
    ids.add(overview?.runId ?? run.runId)
    await turns.next(signal)
  }
  const trainings = trainingSummaries(place.trainings()).map(
    ({ found, overview, problem }): TrainingEntry => overview ?? { id: found.id, problem: problem.message },
  )
  return { runs, trainings: trainings.reverse() }
}
