import type { TaskResponse, TaskStatus, WorkerName } from '../task.ts'
import type { Step, Usage } from '../trajectory.ts'
import type { BlobReader } from './blobs.ts'
import { decodeError } from './stored-error.ts'

/** The columns of an attempt that make a response. */
export const ATTEMPT_COLUMNS = `
  a.role, a.status, a.attempt, a.ended_at AS endedAt, a.queued_us AS queuedUs, a.run_us AS runUs, a.answer, a.error,
  a.trajectory, a.logs, a.usage, a.worker, w.id AS workerId, w.host AS workerHost, w.pid AS workerPid`

export const ATTEMPT_JOIN = `LEFT JOIN _workers w ON w.worker = a.worker`

export interface AttemptColumns {
  readonly role: number
  readonly status: TaskStatus
  readonly attempt: number
  readonly endedAt: number
  readonly queuedUs: number
  readonly runUs: number
  readonly answer: unknown
  readonly error: unknown
  readonly trajectory: unknown
  readonly logs: unknown
  readonly usage: string | null
  readonly worker: number | null
  readonly workerId: string
  readonly workerHost: string
  readonly workerPid: number | null
}

export function responseOf(id: string, agentName: string, row: AttemptColumns, blobs: BlobReader): TaskResponse {
  const base = {
    id,
    agentName,
    trajectory: (blobs.read(row.trajectory) ?? []) as Step[],
    usage: (row.usage === null ? {} : JSON.parse(row.usage)) as Usage,
    timing: { queuedMs: row.queuedUs / 1000, runMs: row.runUs / 1000 },
    attempts: row.attempt,
    worker: workerOf(row),
    logs: (blobs.read(row.logs) ?? []) as string[],
    restored: true,
  }
  return row.status === 'success'
    ? { ...base, success: true, status: row.status, answer: blobs.read(row.answer) }
    : { ...base, success: false, status: row.status, error: decodeError(blobs.read(row.error)) }
}

const workerOf = (row: AttemptColumns): WorkerName | undefined =>
  row.worker === null ? undefined : { id: row.workerId, host: row.workerHost, pid: row.workerPid ?? undefined }
