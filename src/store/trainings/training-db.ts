import { statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import { lastSession } from '../run-writer.ts'
import { StoreDb } from '../store-db.ts'
import { corrupt, locked, storeError } from '../store-errors.ts'
import { claimTraining, findTraining, refuseTraining, type TrainingMode, trainingNotFound } from './claim-training.ts'
import { tasksToThin, thinPiece } from './thin-run.ts'
import { TrainingFiles } from './training-files.ts'
import { readHistory, type TrainingHistory } from './training-history.ts'
import { checkTrainingId, trainingFolder } from './training-ids.ts'
import type { Ending, EvalRow, NewTraining, PlanRow, TrainingColumns, UpdateRow, VersionRow } from './training-rows.ts'

export interface OpenTraining {
  /** The file of the store. */
  readonly path: string
  readonly shared: boolean
  readonly id: string
  readonly mode: TrainingMode
  readonly durability: 'normal' | 'full'
  /** Used only if the training is new. */
  readonly begin: NewTraining
}

/** The most characters of an error that are stored. */
const ERROR_CHARS = 4096

/**
 * Writes one training. It is synchronous, in the thread of its caller: a few small transactions per update. One living
 * process owns a training at a time, and each transaction checks the ownership. `Report` and `Summary` are JSON of the caller.
 */
export class TrainingDb<Report extends object = object, Summary = unknown> {
  readonly id: string
  readonly isNew: boolean
  /** The configuration of the first session. */
  readonly config: unknown
  readonly history: TrainingHistory<Report, Summary>
  readonly #store: StoreDb
  readonly #training: number
  readonly #full: boolean
  readonly #files: TrainingFiles
  /** The state of the last committed update. */
  #state: string | undefined
  /** Hashes of files that were written but are not yet referenced by a row. */
  readonly #uncommitted = new Set<string>()
  #isOpen = true
  /** The row of the training before this session. */
  readonly #before: TrainingColumns | undefined

  private constructor(store: StoreDb, { id, mode, durability, begin }: OpenTraining) {
    this.id = id
    this.#store = store
    this.#full = durability === 'full'
    // Check before the transaction: if the training is refused, an old store is not even migrated.
    this.#before = refuseTraining(store, id, mode)
    this.isNew = this.#before === undefined
    // Read in the same transaction: a training that cannot be read is not claimed.
    const { training, config, sampler, best, ...rows } = store.transact(this.#full, () => {
      claimTraining(store, id, mode, begin)
      const own = findTraining(store, id)!
      return { ...own, ...readHistory(store, own.training) }
    })
    this.#training = training
    this.config = JSON.parse(config)
    const { plans, updates, versions, evals } = rows
    const history = { plans, updates, versions, evals, sampler: JSON.parse(sampler ?? 'null') as unknown, best }
    this.history = history as TrainingHistory<Report, Summary>
    this.#state = this.history.updates.at(-1)?.stateSha
    this.#files = new TrainingFiles(trainingFolder(store.path, id), id)
    this.#files.removeAllBut(this.#needed())
  }

  /** Throws RUN_EXISTS, RUN_NOT_FOUND or RUN_LOCKED. */
  static open<Report extends object = object, Summary = unknown>(options: OpenTraining): TrainingDb<Report, Summary> {
    const { path, shared, id, mode } = options
    checkTrainingId(id)
    if (!shared)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `a training needs a store for many runs, but ${path} is a single-run file; give a folder: \`store\` (MANYWORLDS_STORE)`,
      )
    if (mode === 'resume') refuseMissing(path, id)
    let store: StoreDb | undefined
    try {
      store = StoreDb.open(path, shared)
      return new TrainingDb(store, options)
    } catch (error) {
      store?.close(false)
      throw storeError(error, path, 'open')
    }
  }

  /** Commits the plan of an update. The run of the update can start after that. */
  plan({ number, epoch, version, run, seed, tasks }: PlanRow): void {
    this.#write(() =>
      this.#insert('_plans', { number, epoch, version, run, seed, tasks: JSON.stringify(tasks), at: Date.now() }),
    )
  }

  /** Commits a version that no update made: the first one. Write its file with `writeFile` before. */
  version(row: VersionRow): void {
    this.#write(() => this.#insertVersion(row))
    this.#uncommitted.delete(row.sha256)
  }

  /** Commits an update and the version that it made. Write their files with `writeFile` before. */
  update(o: { readonly update: UpdateRow<Report>; readonly version?: VersionRow; readonly sampler: unknown }): void {
    const { update, version, sampler } = o
    this.#write(() => {
      this.#insert('_updates', updateColumns(update))
      if (version) this.#insertVersion(version)
      this.#statement('UPDATE _trainings SET sampler = ? WHERE training = ?').run(jsonOf(sampler), this.#training)
    })
    for (const sha256 of [update.stateSha, version?.sha256]) if (sha256) this.#uncommitted.delete(sha256)
    const before = this.#state
    this.#state = update.stateSha
    if (before !== undefined) this.#removeUnneeded([before])
  }

  /** Commits an evaluation; replaces one of the same version and split. `best`: the best version so far. */
  evaluation({ version, split, run, tasks, rollouts, summary }: EvalRow<Summary>, best: number | null): void {
    this.#write(() => {
      this.#statement('DELETE FROM _evals WHERE training = ? AND version = ? AND split = ?').run(
        this.#training,
        version,
        split,
      )
      this.#insert('_evals', { version, split, run, tasks, rollouts, summary: jsonOf(summary), at: Date.now() })
      this.#statement('UPDATE _trainings SET best = ? WHERE training = ?').run(best, this.#training)
    })
  }

  /** Writes weights or a state to disk. Commit a row that references it: unreferenced files are removed when the training is opened. */
  async writeFile(bytes: Uint8Array): Promise<string> {
    const sha256 = await this.#files.write(bytes)
    this.#uncommitted.add(sha256)
    return sha256
  }

  readFile(sha256: string): Promise<Uint8Array> {
    return this.#files.read(sha256)
  }

  /** Removes the weights of versions. Their rows stay. */
  drop(versions: readonly number[]): void {
    const dropped: string[] = []
    this.#write(() => {
      for (const version of versions) {
        const row = this.#statement(
          'UPDATE _versions SET kept = 0 WHERE training = ? AND version = ? AND kept = 1 RETURNING sha256',
        ).get(this.#training, version) as { sha256: string } | undefined
        if (row) dropped.push(row.sha256)
      }
    })
    this.#removeUnneeded(dropped)
  }

  /**
   * Removes the steps of all but one in `oneIn` trajectories of a finished run of the training; their outcomes stay. For runs
   * that no update will learn from any more. Returns the number of tasks whose steps were removed.
   */
  async thin(run: string, oneIn: number): Promise<number> {
    if (!Number.isSafeInteger(oneIn) || oneIn < 1)
      throw new ManyworldsError('CONFIG_INVALID', `\`oneIn\` must be a whole number of at least 1, got ${oneIn}`)
    const row = this.#statement('SELECT run FROM _run WHERE run_id = ? AND training = ?').get(run, this.#training)
    if (!row || oneIn === 1) return 0
    const number = row.run as number
    const last = lastSession(this.#store, number)
    if (last?.endedAt === null && this.#store.isAlive(last.owner))
      throw locked(this.#store.path, { runId: run, ...last })
    const tasks = tasksToThin(this.#store, number, oneIn)
    for (let done = 0; done < tasks.length; await nextTurn())
      this.#write(() => {
        done += thinPiece(this.#store, tasks.slice(done))
      })
    return tasks.length
  }

  /** Records how the session ended and releases the training. */
  close(how: Exclude<Ending, 'removing'>, error?: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#write(() =>
        this.#statement('UPDATE _trainings SET ended_at = ?, ending = ?, error = ? WHERE training = ?').run(
          ...[Date.now(), how, error?.slice(0, ERROR_CHARS) ?? null, this.#training],
        ),
      )
    } finally {
      this.#store.close(false)
    }
  }

  /** Restores the state from before this session: the session was refused and has changed nothing. */
  leave(): void {
    if (!this.#isOpen) return
    const { endedAt = null, ending = null, error = null } = this.#before ?? {}
    this.#isOpen = false
    try {
      this.#write(() =>
        this.#statement('UPDATE _trainings SET ended_at = ?, ending = ?, error = ? WHERE training = ?').run(
          ...[endedAt ?? Date.now(), ending ?? 'interrupted', error, this.#training],
        ),
      )
    } finally {
      this.#store.close(false)
    }
  }

  /** Runs one transaction, if this process still owns the training. */
  #write(work: () => void): void {
    try {
      this.#store.transact(this.#full, () => {
        const own = this.#statement('UPDATE _trainings SET seen_at = ? WHERE training = ? AND owner = ?')
        if (own.run(Date.now(), this.#training, this.#store.owner).changes === 0) throw this.#takenOver()
        work()
      })
    } catch (error) {
      throw storeError(error, this.#store.path, 'write')
    }
  }

  #takenOver(): ManyworldsError {
    return new ManyworldsError(
      'RUN_LOCKED',
      `another process has taken over or removed training '${this.id}' in ${this.#store.path}; this process stops writing`,
    )
  }

  #insert(table: string, columns: Readonly<Record<string, string | number | null>>): void {
    const names = ['training', ...Object.keys(columns)]
    this.#statement(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
      this.#training,
      ...Object.values(columns),
    )
  }

  #insertVersion({ version, update, sha256, policy, bytes, kept }: VersionRow): void {
    const columns = { version, update_number: update, sha256, policy, bytes, kept: Number(kept), at: Date.now() }
    this.#insert('_versions', columns)
  }

  #removeUnneeded(sha256s: readonly string[]): void {
    const needed = this.#needed()
    this.#files.remove(sha256s.filter((sha256) => !needed.has(sha256)))
  }

  /** Files that rows reference or are about to reference. */
  #needed(): Set<string> {
    const kept = this.#statement('SELECT sha256 FROM _versions WHERE training = ? AND kept = 1').all(this.#training)
    const weights = kept.map(({ sha256 }) => String(sha256))
    return new Set([...weights, ...this.#uncommitted, ...(this.#state === undefined ? [] : [this.#state])])
  }

  #statement(sql: string) {
    return this.#store.statement(sql)
  }
}

function updateColumns({ members, report, ...update }: UpdateRow) {
  const { number, epoch, versionIn, versionOut, batchSha, stateSha, collectMs, trainMs, curveSha } = update
  return {
    ...{ number, epoch, version_in: versionIn, version_out: versionOut, members: JSON.stringify(members) },
    ...{ batch_sha: batchSha, state_sha: stateSha, report: jsonOf(report), collect_ms: collectMs, train_ms: trainMs },
    ...{ curve_sha: curveSha, at: Date.now() },
  }
}

/** JSON.stringify returns undefined for undefined. */
const jsonOf = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** Call this before opening the store, which would create the file. */
function refuseMissing(path: string, id: string): void {
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) throw trainingNotFound(path, id)
  if (file.size === 0) throw corrupt(path, 'it is empty')
}
