import { ManyworldsError } from '../../errors.ts'
import { runFolder } from '../find-run.ts'
import { openForReading } from '../open-for-reading.ts'
import type { DatabaseSync } from '../sqlite.ts'
import { storeError } from '../store-errors.ts'
import { checkedRow, isText } from '../stored-shapes.ts'
import { type FoundTraining, findTrainingIn, listFound } from './find-training.ts'
import { TrainingFiles } from './training-files.ts'
import { splitOfRun, trainingFolder } from './training-ids.ts'
import { type TrainingOverview, trainingOverview } from './training-overview.ts'
import {
  type At,
  EVAL_COLUMNS,
  type EvalRow,
  type EvaluatedSplit,
  evalOf,
  PLAN_COLUMNS,
  type PlanRow,
  planOf,
  TRAINING_COLUMNS,
  type TrainingColumns,
  trainingOf,
  UPDATE_COLUMNS,
  type UpdateRow,
  updateOf,
  VERSION_COLUMNS,
  type VersionRow,
  versionOf,
} from './training-rows.ts'

/**
 * Reads a training, also while it is in progress. Use `RunFile` to read its runs.
 *
 * @example
 * using training = StoredTraining.open('last')
 * for (const { number, report } of training.updates()) console.log(number, report)
 */
export class StoredTraining implements Disposable {
  /** The file of the store. */
  readonly path: string
  readonly id: string
  readonly #db: DatabaseSync
  readonly #training: number

  private constructor({ path, id, training }: FoundTraining) {
    this.path = path
    this.id = id
    this.#training = training
    this.#db = openForReading(path)
  }

  /** `training`: an id, a prefix of it, `'last'`, or FOLDER/ID. `store`: the folder to look in. */
  static open(training: string, options: { readonly store?: string } = {}): StoredTraining {
    return new StoredTraining(findTrainingIn(training, runFolder(options.store)))
  }

  /** Opens a training that `findTrainingIn` or `listFound` returned. */
  static at(found: FoundTraining): StoredTraining {
    return new StoredTraining(found)
  }

  overview(): TrainingOverview {
    return this.#reading(() => {
      const seen = trainingOverview(this.#db, this.path, this.#row())
      // The training may have ended between reading its row and checking its owner. Read again.
      return seen.status === 'died' ? trainingOverview(this.#db, this.path, this.#row()) : seen
    })
  }

  /** The configuration that the training started with. */
  config(): unknown {
    return this.#reading(() => JSON.parse(this.#row().config) as unknown)
  }

  /** The plan of each update, in order, including those that are not committed yet. */
  plans(): (PlanRow & At)[] {
    return this.#all(`SELECT ${PLAN_COLUMNS} FROM _plans WHERE training = ? ORDER BY number`, planOf)
  }

  updates(): (UpdateRow & At)[] {
    return this.#all(`SELECT ${UPDATE_COLUMNS} FROM _updates WHERE training = ? ORDER BY number`, updateOf)
  }

  versions(): (VersionRow & At)[] {
    return this.#all(`SELECT ${VERSION_COLUMNS} FROM _versions WHERE training = ? ORDER BY version`, versionOf)
  }

  /** Evaluations by version; for each version, test before validation. */
  evaluations(): (EvalRow & At)[] {
    return this.#all(`SELECT ${EVAL_COLUMNS} FROM _evals WHERE training = ? ORDER BY version, split`, evalOf)
  }

  /** The ids of the training's runs, in the order in which they started: those that collect (`train`), those that evaluate, or all. */
  runsOf(split: 'train' | EvaluatedSplit | 'all' = 'all'): string[] {
    const sql = 'SELECT run_id AS id FROM _run WHERE training = ? ORDER BY created_at, run'
    const ids = this.#all(sql, (row) => checkedRow<{ id: string }>(row, { id: isText }, 'a run').id)
    return ids.filter((id) => id.startsWith(`${this.id}.`) && (split === 'all' || splitOfRun(id) === split))
  }

  /** The weights of a version. Throws if they were removed or are damaged. */
  async weights(version: number): Promise<Uint8Array> {
    const versions = this.versions()
    const row = versions.find((one) => one.version === version)
    if (row?.kept) return await this.#reading(() => this.#files()).read(row.sha256)
    const kept = versions.flatMap((one) => (one.kept ? [one.version] : []))
    throw new ManyworldsError(
      'STORE_GONE',
      `training '${this.id}' has ${row ? 'no weights of' : 'no'} version ${version}; weights are available for ${kept.length === 0 ? 'no version' : `version ${kept.join(', ')}`}`,
    )
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #files(): TrainingFiles {
    return new TrainingFiles(trainingFolder(this.path, this.id), this.id)
  }

  #row(): TrainingColumns {
    const row = this.#db.prepare(`SELECT ${TRAINING_COLUMNS} FROM _trainings WHERE training = ?`).get(this.#training)
    if (row?.id !== this.id)
      throw new ManyworldsError('STORE_GONE', `training '${this.id}' was removed from ${this.path}`)
    return trainingOf(row)
  }

  #all<Row>(sql: string, rowOf: (row: unknown) => Row): Row[] {
    return this.#reading(() => this.#db.prepare(sql).all(this.#training).map(rowOf))
  }

  #reading<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw storeError(error, this.path, 'read')
    }
  }
}

/** A training with its overview, or with the error from reading it. */
export type TrainingSummary = { readonly found: FoundTraining } & (
  | { readonly overview: TrainingOverview; readonly problem?: undefined }
  | { readonly overview?: undefined; readonly problem: Error }
)

/** Lists the trainings of a folder, the newest last, including those that cannot be read. */
export const summarizeTrainings = (folder: string): TrainingSummary[] => trainingSummaries(listFound(folder))

/** Reads the overviews of trainings, including those that cannot be read. */
export function trainingSummaries(trainings: readonly FoundTraining[]): TrainingSummary[] {
  return trainings.map((found) => {
    try {
      using training = StoredTraining.at(found)
      return { found, overview: training.overview() }
    } catch (problem) {
      return { found, problem: problem as Error }
    }
  })
}

/** Lists the trainings of a folder, the newest last. */
export function listTrainings(options: { readonly store?: string } = {}): TrainingOverview[] {
  return summarizeTrainings(runFolder(options.store)).map(({ overview, problem }) => {
    if (overview === undefined) throw problem
    return overview
  })
}
