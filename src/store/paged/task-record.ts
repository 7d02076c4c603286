import { taskOfRollout } from '../../grade/outcome.ts'
import type { TaskResponse, TaskStatus, WorkerName } from '../../task.ts'
import { numberOf } from '../keys.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns, responseOf, workerOf } from '../rows.ts'
import { ROLE } from '../schema.ts'
import { prepared } from '../sqlite.ts'
import {
  type Columns,
  checkedRow,
  idsOf,
  isAnything,
  isFields,
  isNumber,
  isStatus,
  isText,
  isTime,
  isWhole,
  oneOf,
  orNull,
} from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

/** The most attempts, sub-tasks and rollouts of one task that are read. */
const MOST = 1000

export interface TaskRecord {
  readonly task: number
  readonly id: string
  readonly parentId: string | null
  readonly agentName: string
  readonly groupId: string | null
  readonly rollout: number | null
  readonly input: unknown
  readonly info: Readonly<Record<string, unknown>> | undefined
  readonly dependsOn: readonly string[] | undefined
}

interface TaskColumns extends Omit<TaskRecord, 'dependsOn' | 'info'> {
  readonly info: unknown
  readonly dependsOn: string | null
}

const TASK: Columns<TaskColumns> = {
  task: isWhole,
  id: isText,
  parentId: orNull(isText),
  agentName: isText,
  groupId: orNull(isText),
  rollout: orNull(isWhole),
  input: isAnything,
  info: isAnything,
  dependsOn: orNull(isText),
}

const TASK_SQL = `SELECT t.task, t.id, p.id AS parentId, g.name AS agentName, t.group_id AS groupId, t.rollout, t.input, t.info,
  t.depends_on AS dependsOn FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent
  WHERE t.id = ? AND t.task >= ? AND t.task < ? ORDER BY t.parent_attempt DESC LIMIT 1`

/** A task by its whole id. Of sub-tasks with the same id, the one that the latest attempt of the parent asked for. */
export function taskRecord(run: PagedRun, id: string): TaskRecord | undefined {
  const row = run.row(TASK_SQL, TASK, 'a task', id, ...run.range)
  if (row === undefined) return undefined
  const info = run.value(row.info)
  return run.reading(() => {
    if (info !== undefined && !isFields(info)) throw new Error('`info` of a task is not an object')
    return {
      ...row,
      task: numberOf(row.task),
      input: run.value(row.input),
      info,
      dependsOn: row.dependsOn === null ? undefined : idsOf(row.dependsOn),
    }
  })
}

/** An attempt that has ended. The steps of its response are read on demand. */
export interface EndedRecord {
  readonly seq: number
  readonly epoch: number
  readonly role: number
  readonly endedAt: number
  readonly version: number | null
  readonly start: number | null
  /** Whether its steps are a value of the attempt, as in stores of version 1. */
  readonly hasOldSteps: boolean
  readonly response: TaskResponse
}

type EndedColumns = AttemptColumns & {
  readonly seq: number
  readonly epoch: number
  readonly version: number | null
  readonly id: string
  readonly agentName: string
}

const ENDED: Columns<Pick<EndedColumns, 'seq' | 'epoch' | 'version'>> = {
  seq: isWhole,
  epoch: isWhole,
  version: orNull(isWhole),
}

const ENDED_SQL = `SELECT a.seq, a.epoch, a.version, t.id, g.name AS agentName, ${ATTEMPT_COLUMNS}
  FROM _attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) ${ATTEMPT_JOIN}
  WHERE a.task = ? ORDER BY a.seq LIMIT ${MOST}`

/** The attempts of a task that have ended, in that order. */
export function endedAttempts(run: PagedRun, task: number): EndedRecord[] {
  return run.reading(() => {
    const rows = prepared(run.db, ENDED_SQL).all(run.key(task)) as unknown as EndedColumns[]
    run.blobs.refill()
    return rows.map((row) => {
      const { seq, epoch, version } = checkedRow(row, ENDED, 'an attempt')
      const response = responseOf(row.id, row.agentName, row, run)
      const { role, endedAt, start, trajectory } = row
      const hasOldSteps = start === null && trajectory !== null
      return { seq: numberOf(seq), epoch, version, role, endedAt, start, hasOldSteps, response }
    })
  })
}

/** An attempt that is in progress, or was interrupted with its session. */
export interface OpenRecord {
  readonly start: number
  readonly attempt: number
  readonly epoch: number
  readonly at: number
  readonly worker: WorkerName | undefined
}

type OpenColumns = Omit<OpenRecord, 'worker'> & Pick<AttemptColumns, 'worker' | 'workerId' | 'workerHost' | 'workerPid'>

const OPEN: Columns<OpenColumns> = {
  start: isWhole,
  attempt: isWhole,
  epoch: isWhole,
  at: isTime,
  worker: orNull(isWhole),
  workerId: orNull(isText),
  workerHost: orNull(isText),
  workerPid: orNull(isWhole),
}

const OPEN_SQL = `SELECT b.start, b.attempt, b.at, b.epoch, b.worker, w.id AS workerId, w.host AS workerHost, w.pid AS workerPid
  FROM _starts b LEFT JOIN _workers w ON w.worker = b.worker WHERE b.task = ?
  AND NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start) ORDER BY b.start LIMIT ${MOST}`

export const openAttempts = (run: PagedRun, task: number): OpenRecord[] =>
  run.rows(OPEN_SQL, OPEN, 'a start', run.key(task)).map(({ start, attempt, epoch, at, ...by }) => ({
    ...{ start, attempt, epoch, at },
    worker: workerOf(by),
  }))

/** When a start began; undefined if the task has no such start. */
export function startOf(run: PagedRun, task: number, start: number): number | undefined {
  const sql = 'SELECT at FROM _starts WHERE start = ? AND task = ?'
  return run.row<{ at: number }>(sql, { at: isTime }, 'a start', start, run.key(task))?.at
}

/** The steps of an attempt as stored in version 1. Undefined: there is no such attempt. */
export function oldSteps(run: PagedRun, task: number, seq: number): unknown {
  const sql = 'SELECT trajectory FROM _attempts WHERE seq = ? AND task = ?'
  const columns = { trajectory: isAnything }
  return run.row<{ trajectory: unknown }>(sql, columns, 'an attempt', run.key(seq), run.key(task))?.trajectory
}

/** The number of a task of this run; undefined: there is none with this id. */
export function taskNumber(run: PagedRun, id: string): number | undefined {
  const sql = 'SELECT task FROM _tasks WHERE id = ? AND task >= ? AND task < ? ORDER BY parent_attempt DESC LIMIT 1'
  const row = run.row<{ task: number }>(sql, { task: isWhole }, 'a task', id, ...run.range)
  return row && numberOf(row.task)
}

/** A task beside another: its sub-task, or another rollout. */
export interface RelatedTask {
  readonly task: number
  readonly id: string
  readonly rollout: number | null
  readonly status: TaskStatus | null
  readonly isUnderWay: 0 | 1
  readonly reward: number | null
  readonly solved: 0 | 1 | null
  readonly runUs: number | null
}

const RELATED: Columns<RelatedTask> = {
  task: isWhole,
  id: isText,
  rollout: orNull(isWhole),
  status: orNull(isStatus),
  isUnderWay: oneOf(0, 1),
  reward: orNull(isNumber),
  solved: orNull(oneOf(0, 1)),
  runUs: orNull(isNumber),
}

const RELATED_COLUMNS = `t.task, t.id, t.rollout, a.status, a.reward, a.success AS solved, a.run_us AS runUs,
  a.seq IS NULL AND EXISTS (SELECT 1 FROM _starts b WHERE b.task = t.task AND b.epoch = (SELECT epoch FROM _run WHERE run = ?1)
    AND NOT EXISTS (SELECT 1 FROM _attempts x WHERE x.task = b.task AND x.start = b.start)) AS isUnderWay
  FROM _tasks t LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}`

/** Found through the index on ids, as in `stored-trajectory-context.ts`: the character after '/' is '0'. */
const SUB_TASKS = `SELECT ${RELATED_COLUMNS} WHERE t.id > ?2 || '/' AND t.id < ?2 || '0' AND t.parent = ?3 ORDER BY +t.task LIMIT ${MOST}`

export const subTasksOf = (run: PagedRun, { id, task }: Pick<TaskRecord, 'id' | 'task'>): RelatedTask[] =>
  run.rows(SUB_TASKS, RELATED, 'a sub-task', run.run, id, run.key(task)).map(numbered)

const ROLLOUTS = `SELECT ${RELATED_COLUMNS} WHERE t.group_id = ?2 AND t.task >= ?3 AND t.task < ?4 ORDER BY t.task LIMIT ${MOST}`

/** All rollouts of a task, itself included; empty if it has none. */
export function rolloutsOf(run: PagedRun, { id, groupId, rollout }: TaskRecord): RelatedTask[] {
  if (groupId === null || rollout === null) return []
  const rows = run.rows(ROLLOUTS, RELATED, 'a rollout', run.run, groupId, ...run.range)
  // Several tasks may share a group.
  const own = taskOfRollout(id, rollout)
  return rows.filter((row) => taskOfRollout(row.id, row.rollout) === own).map(numbered)
}

const numbered = (row: RelatedTask): RelatedTask => ({ ...row, task: numberOf(row.task) })
