import { existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { type FoundRun, listRuns, ownRuns, runIn, runsIn } from '../../store/find-run.ts'
import { isRunFile, isSharedStore, sharedStore } from '../../store/run-path.ts'
import { type FoundTraining, listFound, trainingsIn } from '../../store/trainings/find-training.ts'

/** What the viewer shows: the runs of a folder, or of one file. */
export class Place {
  /** The folder or the file. */
  readonly path: string
  readonly #isFile: boolean

  private constructor(path: string, isFile: boolean) {
    this.path = path
    this.#isFile = isFile
  }

  static folder(path: string): Place {
    return new Place(resolve(path), false)
  }

  /** A run file, or a store. A store with its usual name is shown with the run files beside it. */
  static file(path: string): Place {
    return isSharedStore(path) ? Place.folder(dirname(resolve(path))) : new Place(resolve(path), true)
  }

  /** All runs, the newest last, without those of trainings. */
  runs(): FoundRun[] {
    return ownRuns(this.#isFile ? runsIn(this.path) : listRuns(this.path))
  }

  /** All trainings, the newest last. */
  trainings(): FoundTraining[] {
    return this.#isFile ? trainingsIn(this.path) : listFound(this.path)
  }

  /** The file whose changes may change the list; undefined: there is none yet. */
  store(): string | undefined {
    const path = this.#isFile ? this.path : sharedStore(this.path)
    return existsSync(path) ? path : undefined
  }

  /** Finds a run by its id, or by the name of its file. */
  run(id: string): FoundRun {
    const found = this.#isFile ? runsIn(this.path).find(({ runId }) => runId === id) : this.#inFolder(id)
    if (found) return found
    throw new ManyworldsError('RUN_NOT_FOUND', `no run '${id.slice(0, 200)}' in ${this.path}`)
  }

  #inFolder(id: string): FoundRun | undefined {
    const shared = sharedStore(this.path)
    const found = existsSync(shared) ? runIn(shared, id) : undefined
    if (found) return found
    const own = isName(id) ? join(this.path, `${id}.sqlite`) : undefined
    if (own !== undefined && own !== shared && isFile(own)) return { path: own, runId: id, run: undefined }
    // A copied file may have another name than its run.
    return listRuns(this.path).find((run) => run.run === undefined && holds(run.path, id))
  }

  training(id: string): FoundTraining {
    const found = this.trainings().find((training) => training.id === id)
    if (found) return found
    throw new ManyworldsError('RUN_NOT_FOUND', `no training '${id.slice(0, 200)}' in ${this.path}`)
  }
}

/** Whether an id, which comes from a request, names a file in the folder itself. */
const isName = (id: string) => isRunFile(`${id}.sqlite`) && !/[/\\\0]/.test(id) && id.length < 200

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

function holds(path: string, id: string): boolean {
  try {
    return runIn(path, id) !== undefined
  } catch {
    return false
  }
}
