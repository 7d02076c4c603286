import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { runFolder } from '../store/find-run.ts'
import { RunFile } from '../store/run-file.ts'
import { isRunFile } from '../store/run-path.ts'
import { findRunOrTraining } from '../store/trainings/find-training.ts'
import { Place } from './read/place.ts'

/** What to show, and the page to open first. */
export interface Target {
  readonly place: Place
  readonly route: string
  /** A description for the user: `run nightly of /work/runs`. */
  readonly name: string
}

const LIST = '#/'

export const runRoute = (id: string): string => `#/run/${encodeURIComponent(id)}`
export const trainingRoute = (id: string): string => `#/training/${encodeURIComponent(id)}`

/** `what`: a run, a training, a folder, or the path of a file. Throws if there is no such thing. */
export function targetOf(what: string | undefined, dir: string | undefined): Target {
  if (what === undefined) return inFolder(runFolder(dir))
  if (isRunFile(what) && kindOf(what) === 'file') return inFile(what)
  // With a slash, it is the path of a folder. Without one, it may also be the name of a run, which is more likely.
  if (kindOf(what) === 'folder' && /[/\\]|^\.\.?$/.test(what)) return inFolder(resolve(what))
  try {
    return named(what, runFolder(dir))
  } catch (error) {
    if (!ManyworldsError.is(error) || error.code !== 'RUN_NOT_FOUND' || kindOf(what) !== 'folder') throw error
    return inFolder(resolve(what))
  }
}

const kindOf = (path: string): 'file' | 'folder' | undefined => {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isDirectory() ? 'folder' : stats?.isFile() ? 'file' : undefined
}

/** MANYWORLDS_STORE may name a file. */
function inFolder(path: string): Target {
  if (kindOf(path) === 'file') return inFile(path)
  const place = Place.folder(path)
  // Read now, so that a damaged store is one error here, not one in each page.
  place.runs()
  return list(place)
}

function inFile(path: string): Target {
  const place = Place.file(path)
  // Read now, as above.
  const [only, ...others] = place.runs()
  if (only === undefined || others.length > 0 || place.trainings().length > 0) return list(place)
  using run = RunFile.at(only)
  return runIn(place, run.runId)
}

function named(name: string, folder: string): Target {
  const found = findRunOrTraining(name, folder)
  if (found.training) {
    const { path, id } = found.training
    return { place: Place.file(path), route: trainingRoute(id), name: `training ${id} of ${path}` }
  }
  using run = RunFile.at(found.run)
  // With the other runs of the folder, for comparisons.
  return runIn(Place.folder(dirname(found.run.path)), run.runId)
}

const list = (place: Place): Target => ({ place, route: LIST, name: place.path })

const runIn = (place: Place, id: string): Target => ({ place, route: runRoute(id), name: `run ${id} of ${place.path}` })
