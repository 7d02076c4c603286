import { ManyworldsError } from '../../../errors.ts'
import { cacheSize, clearCache } from '../../../store/clear-cache.ts'
import { type FoundRun, listRuns, ownRuns, runFolder } from '../../../store/find-run.ts'
import { overviewsOf, type RunSummary } from '../../../store/overview.ts'
import { removeRuns } from '../../../store/remove-run.ts'
import { sharedStore } from '../../../store/run-path.ts'
import { type Found, type FoundTraining, findRunOrTraining } from '../../../store/trainings/find-training.ts'
import { removeTraining } from '../../../store/trainings/remove-training.ts'
import { StoredTraining } from '../../../store/trainings/stored-training.ts'
import { oneLine } from '../../../text/escape-controls.ts'
import { runArgument } from '../../../text/own-command.ts'
import { counted, bytes as size } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { confirm, INTERRUPTED } from './confirm.ts'
import type { RmArgs } from './spec.ts'

/** Removes recorded runs, trainings, or cached answers, after asking. */
export async function run(args: RmArgs): Promise<number> {
  const { runs: names, olderThan, cache } = args
  if (cache) {
    if (names.length > 0) throw new UsageError('name runs, or give --cache, not both')
    return await removeCache(args)
  }
  if (olderThan !== undefined && names.length > 0) throw new UsageError('name runs, or give --older-than, not both')
  const { runs, trainings } = wanted(args)
  const kept = [...goingRuns(runs), ...goingTrainings(trainings)]
  for (const { what } of kept) say(`${what} is in progress and was not removed`)
  const isKept = (one: Removable) => kept.some(({ found }) => found === one)
  const failed = names.length > 0 && kept.length > 0 ? 1 : 0
  return await remove(
    runs.filter((run) => !isKept(run)),
    trainings.filter((training) => !isKept(training)),
    args,
    failed,
  )
}

type Removable = FoundRun | FoundTraining

/** The named runs and trainings, or all runs that are old enough, without duplicates. Trainings must be named. */
function wanted({ runs: names, dir, olderThan }: RmArgs): { runs: FoundRun[]; trainings: FoundTraining[] } {
  const folder = runFolder(dir)
  const found: Found[] =
    olderThan === undefined
      ? names.map((name) => findRunOrTraining(name, folder))
      : [...overviewsOf(ownRuns(listRuns(folder)))].filter(isOlderThan(olderThan)).map((run) => ({ run: run.found }))
  const runs = found.flatMap((one) => (one.training ? [] : [one.run]))
  for (const run of runs) refuseOfTraining(run)
  return {
    runs: [...new Map(runs.map((run) => [`${run.path}\0${run.run}`, run])).values()],
    trainings: [
      ...new Map(found.flatMap(({ training: one }) => (one ? [[`${one.path}\0${one.id}`, one]] : []))).values(),
    ],
  }
}

/** Refuses a run of a training, because the training could not be resumed without it. */
function refuseOfTraining({ runId, training, path }: FoundRun): void {
  if (training !== undefined)
    throw new UsageError(
      `run ${oneLine(runId)} belongs to training ${oneLine(training)}, which cannot be resumed without it; remove the whole training: manyworlds rm ${oneLine(runArgument(training, path))}`,
    )
}

function goingRuns(runs: readonly FoundRun[]): { found: Removable; what: string }[] {
  const summaries = [...overviewsOf(runs)]
  for (const { problem } of summaries) refuseForeign(problem)
  return summaries.flatMap(({ found, overview }) =>
    overview?.status === 'running' ? [{ found, what: `run ${found.runId}` }] : [],
  )
}

function goingTrainings(trainings: readonly FoundTraining[]): { found: Removable; what: string }[] {
  return trainings.flatMap((found) => {
    using training = StoredTraining.at(found)
    return training.overview().status === 'running' ? [{ found, what: `training ${found.id}` }] : []
  })
}

async function remove(
  runs: readonly FoundRun[],
  trainings: readonly FoundTraining[],
  { dryRun, yes }: RmArgs,
  failed: 0 | 1,
): Promise<number> {
  if (runs.length + trainings.length === 0) {
    process.stderr.write('nothing to remove\n')
    return failed
  }
  const names = [...runs.map(({ runId }) => runId), ...trainings.map(withItsRuns)]
  if (dryRun) {
    for (const name of names) process.stdout.write(`${oneLine(name)}\n`)
    return failed
  }
  const what = [
    ...(runs.length > 0 ? [counted(runs.length, 'run')] : []),
    ...(trainings.length > 0 ? [counted(trainings.length, 'training')] : []),
  ].join(' and ')
  if (!yes) {
    const answer = await confirm(names, `Remove ${what}?`)
    if (answer !== 'yes') return answer === 'interrupted' ? INTERRUPTED : 1
  }
  removeRuns(runs)
  for (const training of trainings) removeTraining(training)
  process.stderr.write(`removed ${what}\n`)
  return failed
}

function withItsRuns(found: FoundTraining): string {
  using training = StoredTraining.at(found)
  const { runs, versions, bytes } = training.overview()
  return `${found.id} (training: ${counted(runs, 'run')}, ${counted(versions, 'version')}, ${size(bytes)} of weights)`
}

/** A damaged run file may be removed, but not a file of another program. */
function refuseForeign(problem: Error | undefined): void {
  if (ManyworldsError.is(problem) && problem.code === 'NOT_A_STORE') throw problem
}

async function removeCache({ dir, olderThan = 0, dryRun, yes }: RmArgs): Promise<number> {
  const path = sharedStore(runFolder(dir))
  const before = olderThan === 0 ? Number.MAX_SAFE_INTEGER : Date.now() - olderThan
  const { replies, bytes } = cacheSize(path, before)
  const what = `${counted(replies, 'cached answer')} (${size(bytes)})`
  if (replies === 0) process.stderr.write('nothing to remove\n')
  else if (dryRun) process.stdout.write(`${what}\n`)
  else {
    const answer = yes ? 'yes' : await confirm([], `Remove ${what} from ${path}?`)
    if (answer !== 'yes') return answer === 'interrupted' ? INTERRUPTED : 1
    clearCache(path, before)
    process.stderr.write(`removed ${what}\n`)
  }
  return 0
}

/** Runs that cannot be read are not selected by age: they must be named. */
function isOlderThan(ms: number): (run: RunSummary) => boolean {
  const before = Date.now() - ms
  return ({ overview }) => overview !== undefined && overview.startedAt < before
}
