import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from '../sqlite.ts'
import { ownerIsAlive } from '../store-db.ts'
import { type Columns, checkedRow, isFields, isNumber, isText, isWhole } from '../stored-shapes.ts'
import { trainingFolder } from './training-ids.ts'
import { type At, EVAL_COLUMNS, type EvalRow, evalOf, type TrainingColumns } from './training-rows.ts'

/** The state of a training. */
export interface TrainingOverview {
  readonly id: string
  readonly file: string
  /** `died`: the process was killed, and the training was not resumed. */
  readonly status: 'running' | 'finished' | 'interrupted' | 'died' | 'failed'
  /** Milliseconds since 1970: start of the first session, end of the last. */
  readonly startedAt: number
  readonly endedAt?: number
  readonly script?: string
  readonly agent: string
  readonly policy: string
  readonly seed: number
  /** How often the training was started or resumed. */
  readonly sessions: number
  /** Why the last session failed or was stopped. */
  readonly error?: string
  /** The number of committed updates, and the epoch of the last one. */
  readonly updates: number
  readonly epoch: number
  /** The number of versions, including the untrained one, and how many of them still have weights. */
  readonly versions: number
  readonly keptVersions: number
  /** The best version by validation. */
  readonly best?: number
  /** The success rate and the reward of the last update. */
  readonly successRate?: number
  readonly reward?: number
  /** The evaluations of the newest evaluated version. */
  readonly validation?: EvalRow
  readonly test?: EvalRow
  /** SHA-256 of the training curve so far. Missing before the first update. */
  readonly curve?: string
  /** Sums over all updates. If collecting and learning overlap, they exceed the elapsed time. */
  readonly collectMs: number
  readonly trainMs: number
  readonly runs: number
  /** The size of weights and states. Runs share the file of the store with other runs, so they are not included. */
  readonly bytes: number
}

interface Sums {
  readonly updates: number
  readonly collectMs: number
  readonly trainMs: number
  readonly versions: number
  readonly kept: number
  readonly runs: number
}

const SUMS: Columns<Sums> = {
  updates: isWhole,
  collectMs: isNumber,
  trainMs: isNumber,
  versions: isWhole,
  kept: isWhole,
  runs: isWhole,
}

interface LastUpdate {
  readonly epoch: number
  readonly curve: string
  readonly report: string
}

const LAST_UPDATE: Columns<LastUpdate> = { epoch: isWhole, curve: isText, report: isText }

/** Reads the overview of a training. Throws if a row is malformed. */
export function trainingOverview(db: DatabaseSync, path: string, row: TrainingColumns): TrainingOverview {
  const { training, id, agent, policy, seed, sessions, best, script, endedAt } = row
  const going = endedAt === null && row.owner !== null && ownerIsAlive(path, row.owner)
  const { updates, collectMs, trainMs, versions, kept, runs } = checkedRow(
    db
      .prepare(
        `SELECT count(*) AS updates, coalesce(sum(collect_ms), 0) AS collectMs, coalesce(sum(train_ms), 0) AS trainMs,
         (SELECT count(*) FROM _versions WHERE training = ?1) AS versions,
         (SELECT count(*) FROM _versions WHERE training = ?1 AND kept = 1) AS kept,
         (SELECT count(*) FROM _run WHERE training = ?1) AS runs FROM _updates WHERE training = ?1`,
      )
      .get(training),
    SUMS,
    'the updates',
  )
  const evaluation = (split: string): (EvalRow & At) | undefined => {
    const sql = `SELECT ${EVAL_COLUMNS} FROM _evals WHERE training = ? AND split = ? ORDER BY version DESC LIMIT 1`
    const found = db.prepare(sql).get(training, split)
    return found && evalOf(found)
  }
  const [validation, test] = [evaluation('validation'), evaluation('test')]
  const error = row.ending === 'removing' ? HALF_REMOVED : row.error
  return {
    ...{ id, file: path, status: statusOf(row, going), startedAt: row.createdAt },
    ...(endedAt !== null && { endedAt }),
    ...(script !== null && { script }),
    ...{ agent, policy, seed, sessions },
    ...(error !== null && !going && { error }),
    ...{ updates, epoch: 0, ...lastUpdate(db, training), versions, keptVersions: kept },
    ...(best !== null && { best }),
    ...(validation && { validation }),
    ...(test && { test }),
    ...{ collectMs, trainMs, runs, bytes: folderBytes(trainingFolder(path, id)) },
  }
}

const HALF_REMOVED = 'its removal was interrupted: run `manyworlds rm` again'

function statusOf({ ending, endedAt }: TrainingColumns, going: boolean): TrainingOverview['status'] {
  if (going) return 'running'
  if (ending === 'removing') return 'failed'
  return endedAt === null ? 'died' : (ending ?? 'died')
}

function lastUpdate(db: DatabaseSync, training: number) {
  const sql = 'SELECT epoch, curve_sha AS curve, report FROM _updates WHERE training = ? ORDER BY number DESC LIMIT 1'
  const row = db.prepare(sql).get(training)
  if (!row) return {}
  const { epoch, curve, report } = checkedRow(row, LAST_UPDATE, 'an update')
  const fields: unknown = JSON.parse(report)
  if (!isFields(fields)) throw new Error('`report` of an update is not an object')
  const { successRate, reward } = fields
  return {
    ...{ epoch, curve },
    ...(isNumber(successRate) && { successRate: successRate as number }),
    ...(isNumber(reward) && { reward: reward as number }),
  }
}

function folderBytes(folder: string): number {
  try {
    return readdirSync(folder).reduce(
      (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    )
  } catch {
    return 0
  }
}
