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
 * Reads a training, also while it is in progress. Its runs are read by `RunFile`.
 *
 * @example
 * using training = StoredTraining.open('last')
 * for (const { number, report } of training.updates()) console.log(number, report)
 */
export class StoredTraining implements Disposable {
  /** The file of its store. */
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

  /** `training`: an id, the beginning of one, `'last'`, or FOLDER/ID. `store`: the folder to look in. */
  static open(training: string, options: { readonly store?: string } = {}): StoredTraining {
    return new StoredTraining(findTrainingIn(training, runFolder(options.store)))
  }

  /** Opens one that was found. */
  static at(found: FoundTraining): StoredTraining {
    return new StoredTraining(found)
  }

  overview(): TrainingOverview {
    return this.#reading(() => {
      const seen = trainingOverview(this.#db, this.path, this.#row())
      // It may have ended between the two looks, at its row and at its owner. Look again.
      return seen.status === 'died' ? trainingOverview(this.#db, this.path, this.#row()) : seen
    })
  }

  /** As it was begun. */
  config(): unknown {
    return this.#reading(() => JSON.parse(this.#row().config) as unknown)
  }

  /** What each update was to learn from, in their order; those that are not committed too. */
  plans(): (PlanRow & At)[] {
    return this.#all(`SELECT ${PLAN_COLUMNS} FROM _plans WHERE training = ? ORDER BY number`, planOf)
  }

  updates(): (UpdateRow & At)[] {
    return this.#all(`SELECT ${UPDATE_COLUMNS} FROM _updates WHERE training = ? ORDER BY number`, updateOf)
  }

  versions(): (VersionRow & At)[] {
    return this.#all(`SELECT ${VERSION_COLUMNS} FROM _versions WHERE training = ? ORDER BY version`, versionOf)
  }

  /** By version; validation after test. */
  evaluations(): (EvalRow & At)[] {
    return this.#all(`SELECT ${EVAL_COLUMNS} FROM _evals WHERE training = ? ORDER BY version, split`, evalOf)
  }

  /** The ids of its runs, in the order in which they were begun: those that collect (`train`), those that evaluate, or all. */
  runsOf(split: 'train' | EvaluatedSplit | 'all' = 'all'): string[] {
    const sql = 'SELECT run_id AS id FROM _run WHERE training = ? ORDER BY created_at, run'
    const ids = this.#all(sql, (row) => checkedRow<{ id: string }>(row, { id: isText }, 'a run').id)
    return ids.filter((id) => id.startsWith(`${this.id}.`) && (split === 'all' || splitOfRun(id) === split))
  }

  /** The bytes of a version. Throws if they were removed, or are damaged. */
  async weights(version: number): Promise<Uint8Array> {
    const versions = this.versions()
    const row = versions.find((one) => one.version === version)
    if (row?.kept) return await this.#reading(() => this.#files()).read(row.sha256)
    const kept = versions.flatMap((one) => (one.kept ? [one.version] : []))
    throw new ManyworldsError(
      'STORE_GONE',
      `training '${this.id}' has ${row ? 'no weights of' : 'no'} version ${version}; it has those of ${kept.join(', ') || 'none'}`,
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

/** A training with its overview, or with the error that reading it gave. */
export type TrainingSummary = { readonly found: FoundTraining } & (
  | { readonly overview: TrainingOverview; readonly problem?: undefined }
  | { readonly overview?: undefined; readonly problem: Error }
)

/** The trainings of a folder, the newest last; those that cannot be read too. */
export function summarizeTrainings(folder: string): TrainingSummary[] {
  return listFound(folder).map((found) => {
    try {
      using training = StoredTraining.at(found)
      return { found, overview: training.overview() }
    } catch (problem) {
      return { found, problem: problem as Error }
    }
  })
}

/** The trainings of a folder, the newest last. */
export function listTrainings(options: { readonly store?: string } = {}): TrainingOverview[] {
  return summarizeTrainings(runFolder(options.store)).map(({ overview, problem }) => {
    if (overview === undefined) throw problem
    return overview
  })
}
