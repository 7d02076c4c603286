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

/** What to go on with, and the file that it is in. */
export interface ToResume {
  readonly runId: string
  readonly file: string
}

/** Finds the run or training that was typed, before the script starts. */
export function runToResume(given: Given): ToResume | 'auto' | undefined {
  return resolved(given, (resume, store) => {
    const found = findRunOrTraining(store !== undefined && isRunFile(store) ? store : resume, runFolder(store))
    if (found.training) return { runId: found.training.id, file: found.training.path }
    using file = RunFile.at(found.run)
    refuseLaterRun(file)
    return { runId: file.runId, file: file.path }
  })
}

/** The training behind what was typed. Of a sweep it may be the name, which the ids of its trainings begin with. */
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
    throw new UsageError('--resume needs the run file, and MANYWORLDS_STORE is off')
  const found = find(resume, store)
  if (runId !== undefined && runId !== found.runId)
    throw new UsageError(`--resume names run '${found.runId}' and --run-id says '${runId}'; give one of them`)
  return found
}

/** A script always starts from its beginning, so of its runs only the first can be named. */
function refuseLaterRun(run: RunFile): void {
  const [, first, place] = /^(.+)-(\d+)$/.exec(run.runId) ?? []
  const found = first === undefined ? undefined : listRuns(dirname(run.path)).find(({ runId }) => runId === first)
  if (found === undefined) return
  using begun = RunFile.at(found)
  if (begun.runId === first && begun.overview().script === run.overview().script)
    throw new UsageError(
      `'${run.runId}' is run ${place} of its script; a script is resumed at its first run: --resume ${first}`,
    )
}
