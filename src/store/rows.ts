import { pendingGrade } from '../grade/grading-task.ts'
import { makeResponse, type ResponseEnd, type StepSource, type TrajectorySource } from '../response.ts'
import type { TaskResponse, TaskStatus, WorkerName } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { BlobReader } from './blobs.ts'
import { RUN_SPAN } from './keys.ts'
import type { RunInStore } from './read-connections.ts'
import { RemovedSteps } from './removed-steps.ts'
import { ROLE } from './schema.ts'
import { decodeError } from './stored-error.ts'
import { episodeOf, gradeOf, isEnding } from './stored-experience.ts'
import {
  type Columns,
  checkedRow,
  isAnything,
  isNumber,
  isStatus,
  isText,
  isTime,
  isWhole,
  linesOf,
  oneOf,
  orNull,
  usageOf,
} from './stored-shapes.ts'
import { StoredSteps } from './stored-steps.ts'

/**
 * The name of the grader of a task `t`. A session may have added one: it grades the answers of earlier sessions too. Sub-tasks
 * have none.
 */
export const GRADER_OF_TASK = `coalesce(t.options ->> '$.grader', (SELECT s.config ->> '$.grade' FROM _run r
  JOIN _sessions s ON s.epoch = t.parent + r.epoch
  WHERE r.run = t.task / ${RUN_SPAN} AND t.parent = r.run * ${RUN_SPAN}))`

/** The columns of an attempt that make a response. */
export const ATTEMPT_COLUMNS = `
  a.role, a.status, a.attempt, a.ended_at AS endedAt, a.queued_us AS queuedUs, a.run_us AS runUs, a.waited_us AS waitedUs, a.answer, a.error,
  a.start, a.trajectory, a.logs, a.usage, a.worker, w.id AS workerId, w.host AS workerHost, w.pid AS workerPid,
  a.episode_reward AS reward, a.episode_success AS success, a.ending, a.final_observation AS finalObservation, a.digest, a.removed_steps AS removedSteps, t.group_id AS groupId, t.rollout,
  CASE a.role WHEN ${ROLE.final} THEN (SELECT n.record FROM _grades n WHERE n.task = a.task ORDER BY n.grade DESC LIMIT 1) END AS grade,
  CASE WHEN a.role = ${ROLE.final} AND a.status = 'success' THEN ${GRADER_OF_TASK} END AS grader`

export const ATTEMPT_JOIN = `LEFT JOIN _workers w ON w.worker = a.worker`

export interface AttemptColumns {
  readonly role: number
  readonly status: TaskStatus
  readonly attempt: number
  readonly endedAt: number
  readonly queuedUs: number
  readonly runUs: number
  readonly waitedUs: number
  readonly answer: unknown
  readonly error: unknown
  readonly start: number | null
  readonly trajectory: unknown
  readonly logs: unknown
  readonly usage: string | null
  readonly worker: number | null
  readonly workerId: string | null
  readonly workerHost: string | null
  readonly workerPid: number | null
  readonly reward: number | null
  readonly success: number | null
  readonly ending: string | null
  readonly finalObservation: unknown
  readonly digest: string | null
  readonly removedSteps: number | null
  readonly groupId: string | null
  readonly rollout: number | null
  readonly grade: unknown
  /** The name of the grader of its answer; null: nothing grades it. */
  readonly grader: string | null
}

const ATTEMPT: Columns<AttemptColumns> = {
  role: oneOf(...Object.values(ROLE)),
  status: isStatus,
  attempt: isWhole,
  endedAt: isTime,
  queuedUs: isNumber,
  runUs: isNumber,
  waitedUs: isNumber,
  answer: isAnything,
  error: isAnything,
  start: orNull(isWhole),
  trajectory: isAnything,
  logs: isAnything,
  usage: orNull(isText),
  worker: orNull(isWhole),
  workerId: orNull(isText),
  workerHost: orNull(isText),
  workerPid: orNull(isWhole),
  reward: orNull(isNumber),
  success: orNull(oneOf(0, 1)),
  ending: orNull(isEnding),
  finalObservation: isAnything,
  digest: orNull(isText),
  removedSteps: orNull(isWhole),
  groupId: orNull(isText),
  rollout: orNull(isWhole),
  grade: isAnything,
  grader: orNull(isText),
}

/** What is needed to turn a row into a response. */
export interface StoredIn {
  readonly blobs: BlobReader
  /** The run that the steps are read from. */
  readonly from: RunInStore
  readonly around: TrajectorySource
}

/** Makes a response. Throws if the row, or a blob that it refers to, is malformed. */
export function responseOf(
  id: string,
  agentName: string,
  columns: AttemptColumns,
  { blobs, from, around }: StoredIn,
): TaskResponse {
  if (!isText(id) || !isText(agentName)) throw new Error('the id of a task or the name of an agent is not a string')
  const row = checkedRow(columns, ATTEMPT, `an attempt of task '${id.slice(0, 80)}'`)
  const base = {
    id,
    agentName,
    usage: usageOf(row.usage),
    timing: { queuedMs: row.queuedUs / 1000, runMs: row.runUs / 1000, waitedMs: row.waitedUs / 1000 },
    attempts: row.attempt,
    worker: workerOf(row),
    logs: linesOf(blobs.read(row.logs)),
    restored: true,
    ...experienceOf(row, blobs),
  }
  const end: ResponseEnd =
    row.status === 'success'
      ? { success: true, status: row.status, answer: blobs.read(row.answer) }
      : { success: false, status: row.status, error: decodeError(blobs.read(row.error)) }
  return makeResponse(base, end, stepsOf(row, from), around)
}

function stepsOf({ start, trajectory, removedSteps }: AttemptColumns, from: RunInStore): StepSource | readonly Step[] {
  if (removedSteps !== null) return new RemovedSteps(removedSteps, from.path)
  if (start !== null) return new StoredSteps(from, { start })
  return trajectory === null ? [] : new StoredSteps(from, { value: trajectory })
}

export const workerOf = (
  row: Pick<AttemptColumns, 'worker' | 'workerId' | 'workerHost' | 'workerPid'>,
): WorkerName | undefined =>
  row.worker === null || row.workerId === null || row.workerHost === null
    ? undefined
    : { id: row.workerId, host: row.workerHost, pid: row.workerPid ?? undefined }

/** The fields that only episodes, rollouts and graded tasks have. */
function experienceOf(row: AttemptColumns, blobs: BlobReader): Partial<TaskResponse> {
  const pending = row.grader === null ? undefined : pendingGrade(row.grader)
  const grade = row.grade === null ? pending : gradeOf(blobs.read(row.grade))
  return {
    ...(row.groupId !== null && { groupId: row.groupId }),
    ...(row.rollout !== null && { rollout: row.rollout }),
    ...(row.ending !== null && { episode: episodeOf(row, blobs) }),
    ...(row.digest !== null && { digest: row.digest }),
    ...(row.removedSteps !== null && { removedSteps: row.removedSteps }),
    ...(grade && { grade }),
  }
}
