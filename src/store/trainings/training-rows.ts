import {
  type Columns,
  checkedRow,
  isFields,
  isNumber,
  isText,
  isTime,
  isWhole,
  oneOf,
  orNull,
} from '../stored-shapes.ts'

/** The values of a new training. */
export interface NewTraining {
  readonly manyworlds: string
  readonly script?: string
  readonly agent: string
  readonly policy: string
  readonly seed: number
  /** JSON. */
  readonly config: unknown
}

/** The plan of an update, committed before its run starts. */
export interface PlanRow {
  readonly number: number
  readonly epoch: number
  /** The version that acts in the run. */
  readonly version: number
  /** The id of the collection run, and its seed. */
  readonly run: string
  readonly seed: number
  /** Ids of tasks. */
  readonly tasks: readonly string[]
}

/** A rollout that an update learned from. The digest is that of its trajectory, if it has one. */
export type Member = readonly [task: string, rollout: number, digest: string | null]

/** An update. `Report` is JSON of the trainer; the store does not interpret it. */
export interface UpdateRow<Report extends object = object> {
  readonly number: number
  readonly epoch: number
  readonly versionIn: number
  /** Null: nothing could be learned, so the version stays the same. */
  readonly versionOut: number | null
  readonly members: readonly Member[]
  readonly batchSha: string
  /** The file with the state of the learner after the update. */
  readonly stateSha: string
  /** JSON. */
  readonly report: Report
  readonly collectMs: number
  readonly trainMs: number
  readonly curveSha: string
}

export interface VersionRow {
  readonly version: number
  /** The update that made the version. Null: the version existed before the first update. */
  readonly update: number | null
  /** The hash of the file with the weights. Any text if `kept` is false. */
  readonly sha256: string
  readonly policy: string
  readonly bytes: number
  /** False: the weights were removed or are stored outside. */
  readonly kept: boolean
}

/** `off-task`: tasks of another kind, on which the training should not lose quality. */
export type EvaluatedSplit = 'validation' | 'test' | 'off-task'

export interface EvalRow<Summary = unknown> {
  readonly version: number
  readonly split: EvaluatedSplit
  readonly run: string
  readonly tasks: number
  readonly rollouts: number
  /** JSON. */
  readonly summary: Summary
}

/** When a row was written, in milliseconds since 1970. */
export interface At {
  readonly at: number
}

/** A row of `_trainings`. */
export interface TrainingColumns {
  readonly training: number
  readonly id: string
  readonly createdAt: number
  readonly manyworlds: string
  readonly script: string | null
  readonly agent: string
  readonly policy: string
  readonly seed: number
  readonly config: string
  readonly owner: string | null
  readonly pid: number
  readonly host: string
  readonly startedAt: number
  readonly seenAt: number
  readonly endedAt: number | null
  readonly ending: Ending | null
  readonly error: string | null
  readonly sessions: number
  readonly sampler: string | null
  readonly best: number | null
}

/** `removing`: the removal has started and must be finished. */
export type Ending = 'finished' | 'interrupted' | 'failed' | 'removing'

export const TRAINING_COLUMNS = `training, id, created_at AS createdAt, manyworlds, script, agent, policy, seed, config, owner, pid, host,
  started_at AS startedAt, seen_at AS seenAt, ended_at AS endedAt, ending, error, sessions, sampler, best`
export const PLAN_COLUMNS = 'number, epoch, version, run, seed, tasks, at'
export const UPDATE_COLUMNS = `number, epoch, version_in AS versionIn, version_out AS versionOut, members, batch_sha AS batchSha,
  state_sha AS stateSha, report, collect_ms AS collectMs, train_ms AS trainMs, curve_sha AS curveSha, at`
export const VERSION_COLUMNS = 'version, update_number AS "update", sha256, policy, bytes, kept, at'
export const EVAL_COLUMNS = 'version, split, run, tasks, rollouts, summary, at'

const TRAINING: Columns<TrainingColumns> = {
  training: isWhole,
  id: isText,
  createdAt: isTime,
  manyworlds: isText,
  script: orNull(isText),
  agent: isText,
  policy: isText,
  seed: isNumber,
  config: isText,
  owner: orNull(isText),
  pid: isWhole,
  host: isText,
  startedAt: isTime,
  seenAt: isTime,
  endedAt: orNull(isTime),
  ending: orNull(oneOf('finished', 'interrupted', 'failed', 'removing')),
  error: orNull(isText),
  sessions: isWhole,
  sampler: orNull(isText),
  best: orNull(isWhole),
}

/** A row as it is stored: lists and objects as JSON text. */
type Stored<Row, Json extends keyof Row> = {
  readonly [Column in keyof Row]: Column extends Json ? string : Row[Column]
}

const PLAN: Columns<Stored<PlanRow & At, 'tasks'>> = {
  number: isWhole,
  epoch: isWhole,
  version: isWhole,
  run: isText,
  seed: isNumber,
  tasks: isText,
  at: isTime,
}

export const isSha256 = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

const UPDATE: Columns<Stored<UpdateRow & At, 'members' | 'report'>> = {
  number: isWhole,
  epoch: isWhole,
  versionIn: isWhole,
  versionOut: orNull(isWhole),
  members: isText,
  batchSha: isText,
  stateSha: isSha256,
  report: isText,
  collectMs: isNumber,
  trainMs: isNumber,
  curveSha: isText,
  at: isTime,
}

const VERSION: Columns<Omit<VersionRow, 'kept'> & At & { readonly kept: number }> = {
  version: isWhole,
  update: orNull(isWhole),
  sha256: isText,
  policy: isText,
  bytes: isWhole,
  kept: oneOf(0, 1),
  at: isTime,
}

const EVAL: Columns<Stored<EvalRow & At, 'summary'>> = {
  version: isWhole,
  split: oneOf('validation', 'test', 'off-task'),
  run: isText,
  tasks: isWhole,
  rollouts: isWhole,
  summary: isText,
  at: isTime,
}

export const trainingOf = (row: unknown): TrainingColumns => checkedRow(row, TRAINING, 'a training')

export function planOf(row: unknown): PlanRow & At {
  const { tasks, ...plan } = checkedRow(row, PLAN, 'a plan')
  const ids: unknown = JSON.parse(tasks)
  if (!Array.isArray(ids) || !ids.every(isText)) throw new Error('`tasks` of a plan is not a list of ids')
  return { ...plan, tasks: ids as string[] }
}

export function updateOf(row: unknown): UpdateRow & At {
  const { members, report, ...update } = checkedRow(row, UPDATE, 'an update')
  const list: unknown = JSON.parse(members)
  if (!Array.isArray(list) || !list.every(isMember))
    throw new Error('`members` of an update is not a list of tasks, rollouts and digests')
  const reported: unknown = JSON.parse(report)
  if (!isFields(reported)) throw new Error('`report` of an update is not an object')
  return { ...update, members: list as Member[], report: reported }
}

export function versionOf(row: unknown): VersionRow & At {
  const { kept, ...version } = checkedRow(row, VERSION, 'a version')
  // The hash becomes part of a path.
  if (kept === 1 && !isSha256(version.sha256)) throw new Error('`sha256` of a version is not a SHA-256 hash')
  return { ...version, kept: kept === 1 }
}

export function evalOf(row: unknown): EvalRow & At {
  const { summary, ...evaluation } = checkedRow(row, EVAL, 'an evaluation')
  return { ...evaluation, summary: JSON.parse(summary) as unknown }
}

const isMember = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 3 && isText(value[0]) && isWhole(value[1]) && orNull(isText)(value[2])
