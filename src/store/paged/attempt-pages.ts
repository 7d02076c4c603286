import type { TaskStatus } from '../../task.ts'
import { RUN_SPAN } from '../keys.ts'
import { type Columns, isNumber, isStatus, isTime, isWhole, oneOf, orNull } from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

/** An attempt that has ended: when and where it ran. */
export interface EndedAttempt {
  readonly seq: number
  readonly task: number
  readonly worker: number | null
  readonly attempt: number
  /** A value of `ROLE`. */
  readonly role: number
  readonly status: TaskStatus
  readonly endedAt: number
  readonly runUs: number
}

const ENDED: Columns<EndedAttempt> = {
  seq: isWhole,
  task: isWhole,
  worker: orNull(isWhole),
  attempt: isWhole,
  role: oneOf(0, 1, 2),
  status: isStatus,
  endedAt: isTime,
  runUs: isNumber,
}

const ENDED_SQL = `SELECT seq % ${RUN_SPAN} AS seq, task % ${RUN_SPAN} AS task, worker % ${RUN_SPAN} AS worker, attempt, role, status, ended_at AS endedAt, run_us AS runUs FROM _attempts a
  WHERE a.seq > ? AND a.seq < ? ORDER BY a.seq LIMIT ?`

/** The attempts after a position in the order of commits. */
export function endedPage(run: PagedRun, after: number, limit: number): EndedAttempt[] {
  return run.page(after, ({ seq }) => seq, ENDED_SQL, ENDED, 'an attempt', limit)
}

/** An attempt that has started and has not ended. */
export interface OpenAttempt {
  readonly start: number
  readonly task: number
  readonly worker: number | null
  readonly attempt: number
  /** The number of the session. */
  readonly epoch: number
  readonly at: number
}

const OPEN: Columns<OpenAttempt> = {
  start: isWhole,
  task: isWhole,
  worker: orNull(isWhole),
  attempt: isWhole,
  epoch: isWhole,
  at: isTime,
}

const OPEN_COLUMNS = `b.start, b.task % ${RUN_SPAN} AS task, b.worker % ${RUN_SPAN} AS worker, b.attempt, b.epoch, b.at`
const HAS_NOT_ENDED = 'NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start)'

const OPEN_SQL = `SELECT ${OPEN_COLUMNS} FROM _starts b WHERE b.task > ? AND b.task <= ? AND ${HAS_NOT_ENDED} ORDER BY b.task, b.start`

/** The unfinished attempts of the tasks after a number, up to and including another. */
export const openOfTasks = (run: PagedRun, after: number, last: number): OpenAttempt[] =>
  run.rows(OPEN_SQL, OPEN, 'a start', run.key(after), run.key(last))

const NEW_SQL = `SELECT ${OPEN_COLUMNS} FROM _starts b WHERE b.start > ? AND b.task >= ? AND b.task < ? AND ${HAS_NOT_ENDED} ORDER BY b.start`

/** The attempts that have started since a position, and have not ended. */
export const openSince = (run: PagedRun, start: number): OpenAttempt[] =>
  run.rows(NEW_SQL, OPEN, 'a start', start, ...run.range)

const GRADED: Columns<{ task: number }> = { task: isWhole }
const GRADED_SQL = `SELECT DISTINCT task % ${RUN_SPAN} AS task FROM _grades WHERE grade > ? AND grade < ?`

/** The numbers of the tasks that were graded since a position. */
export const gradedSince = (run: PagedRun, grade: number): number[] =>
  run.rows(GRADED_SQL, GRADED, 'a grade', run.key(grade), run.range[1]).map(({ task }) => task)
