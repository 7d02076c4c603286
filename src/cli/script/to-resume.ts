import { basename, dirname, resolve } from 'node:path'
import { listRuns, runFolder } from '../../store/find-run.ts'
import { RunFile } from '../../store/run-file.ts'
import { defaultStore, isRunFile } from '../../store/run-path.ts'
import { findRunOrTraining, findTrainingIn, listFound } from '../../store/trainings/find-training.ts'
import { UsageError } from '../frame/usage-error.ts'

interface Given {
  readonly resume: string | undefined
  readonly runId: string | undefined
  readonly store: string | undefined
}

/** The run or training to resume, and its file. */
export interface ToResume {
  readonly runId: string
  readonly file: string
}

/** Finds the typed run or training before the script starts. */
export function runToResume(given: Given): ToResume | 'auto' | undefined {
  return resolved(given, (resume, store) => {
    const found = findRunOrTraining(store !== undefined && isRunFile(store) ? store : resume, runFolder(store))
    if (found.training) return { runId: found.training.id, file: found.training.path }
    using file = RunFile.at(found.run)
    refuseLaterRun(file)
    return { runId: file.runId, file: file.path }
  })
}

/** Finds the typed training. It may also be the name of a sweep, with which the ids of its trainings begin. */
export function trainingToResume(given: Given): ToResume | 'auto' | undefined {
  return resolved(given, (resume, store) => {
    const folder = resume.includes('/') ? resolve(dirname(resume)) : runFolder(store)
    const name = basename(resume)
    const all = listFound(folder)
    const ofSweep = all.find(({ id }) => id.startsWith(`${name}.`))
    if (ofSweep && !all.some(({ id }) => id === name)) return { runId: name, file: ofSweep.path }
    const { id, path } = findTrainingIn(name, folder)
    return { runId: id, file: path }
  })
}

function resolved(
  { resume, runId, store }: Given,
  find: (resume: string, store: string | undefined) => ToResume,
): ToResume | 'auto' | undefined {
  if (resume === undefined) return undefined
  if (resume === 'auto') {
    if (runId === undefined)
      throw new UsageError('--resume auto needs --run-id: the name under which the run is found again')
    return resume
  }
  if (store === undefined && defaultStore() === false)
    throw new UsageError('--resume needs a run file, but MANYWORLDS_STORE is off')
  const found = find(resume, store)
  if (runId !== undefined && runId !== found.runId)
    throw new UsageError(`--resume names run '${found.runId}', but --run-id names '${runId}'; give only one of them`)
  return found
}

/** Refuses a run that is not the first of its script, because a resumed script starts from its beginning. */
function refuseLaterRun(run: RunFile): void {
  const [, first, place] = /^(.+)-(\d+)$/.exec(run.runId) ?? []
  const found = first === undefined ? undefined : listRuns(dirname(run.path)).find(({ runId }) => runId === first)
  if (found === undefined) return
  using begun = RunFile.at(found)
  if (begun.runId === first && begun.overview().script === run.overview().script)
    throw new UsageError(`'${run.runId}' is run number ${place} of its script; resume the first one: --resume ${first}`)
}
