import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { type FoundRun, findRun, listRuns, ownRuns } from '../find-run.ts'
import { openForReading } from '../open-for-reading.ts'
import { isRunFile, sharedStore } from '../run-path.ts'
import { storeError } from '../store-errors.ts'
import { checkedRow, isText, isTime, isWhole } from '../stored-shapes.ts'

/** The location of a training. */
export interface FoundTraining {
  readonly path: string
  readonly id: string
  /** The number of the training in the store. */
  readonly training: number
}

/** A training with the time at which it was last written. */
interface DatedTraining extends FoundTraining {
  readonly time: number
}

/** Lists the trainings of a folder, the newest last. */
export function listFound(folder: string): DatedTraining[] {
  const path = sharedStore(folder)
  return existsSync(path) ? trainingsIn(path) : []
}

/** Lists the trainings of a store, the newest last. */
export function trainingsIn(path: string): DatedTraining[] {
  using db = openForReading(path)
  try {
    const rows = db.prepare('SELECT training, id, coalesce(ended_at, seen_at) AS time FROM _trainings').all()
    return rows
      .map((row) => {
        const { training } = checkedRow<{ training: number }>(row, { training: isWhole }, 'a training')
        // A damaged id or time is reported when that training is opened. It must not hide the others.
        const id = isText(row.id) ? String(row.id) : `(training number ${training}, no valid id)`
        return { path, training, id, time: isTime(row.time) ? Number(row.time) : 0 }
      })
      .sort((a, b) => a.time - b.time || a.training - b.training)
  } catch (error) {
    throw storeError(error, path, 'read')
  }
}

/** Finds a training by its id, a prefix of its id, `last`, or FOLDER/ID. */
export function findTrainingIn(name: string, folder: string): FoundTraining {
  if (name.includes('/')) return findTrainingIn(basename(name), resolve(dirname(name)))
  const all = listFound(folder)
  if (all.length === 0) throw notFound(`no trainings in ${folder}`)
  const alike = matching(all, ({ id }) => id, name)
  if (alike.length === 1) return alike[0]!
  const latest = (some: readonly FoundTraining[]) => names(some.map(({ id }) => id))
  if (alike.length > 1) throw notFound(`several trainings start with '${name}': ${latest(alike)}; give more of the id`)
  throw notFound(
    `no training '${name}' in ${folder}; the latest are ${latest(all)}. Run \`manyworlds trainings\` to list all`,
  )
}

export type Found = { readonly run: FoundRun; readonly training?: undefined } | { readonly training: FoundTraining }

/** Finds a run or a training by name. Throws if the name is a prefix of several. */
export function findRunOrTraining(name: string, folder: string): Found {
  if (isRunFile(name)) return { run: findRun(name, folder) }
  if (name.includes('/')) {
    const place = resolve(dirname(name))
    return existsSync(sharedStore(place)) ? findRunOrTraining(basename(name), place) : { run: findRun(name, folder) }
  }
  const trainings = listFound(folder)
  if (trainings.length === 0) return { run: findRun(name, folder) }
  const runs = listRuns(folder)
  const exact = runs.find(({ runId }) => runId === name)
  if (exact) return { run: exact }
  const all = [
    ...trainings.map((training) => ({ id: training.id, time: training.time, found: { training } })),
    ...ownRuns(runs).map((run) => ({ id: run.runId, time: run.time, found: { run } })),
  ].sort((a, b) => a.time - b.time)
  const alike = matching(all, ({ id }) => id, name)
  if (alike.length === 1) return alike[0]!.found
  if (alike.length > 1)
    throw notFound(
      `several runs and trainings start with '${name}': ${names(alike.map(({ id }) => id))}; give more of the id`,
    )
  return { run: findRun(name, folder) }
}

/** `all`: sorted by time, the newest last. */
function matching<Item>(all: readonly Item[], idOf: (item: Item) => string, name: string): Item[] {
  if (name === 'last') return all.slice(-1)
  const exact = all.find((item) => idOf(item) === name)
  return exact ? [exact] : all.filter((item) => idOf(item).startsWith(name))
}

const names = (ids: readonly string[]) => ids.slice(-5).reverse().join(', ')
const notFound = (what: string) => new ManyworldsError('RUN_NOT_FOUND', what)
