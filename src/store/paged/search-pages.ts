import { ascending } from '../ascending.ts'
import { RUN_SPAN, STEP_SPAN } from '../keys.ts'
import { prepared } from '../sqlite.ts'
import { StepBodies } from '../step-rows.ts'
import { type Columns, isAnything, isText, isWhole } from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

/** Larger blobs are not searched: decoding one takes several times its size in memory. */
const MOST_BLOB_BYTES = 32 * 1024 * 1024

export interface TaskTexts {
  readonly task: number
  readonly id: string
  readonly input: unknown
}

const TASK: Columns<TaskTexts> = { task: isWhole, id: isText, input: isAnything }
const TASKS = `SELECT task % ${RUN_SPAN} AS task, id, input FROM _tasks t WHERE t.task > ? AND t.task < ? ORDER BY t.task LIMIT ?`
const IDS = `SELECT task % ${RUN_SPAN} AS task, id, NULL AS input FROM _tasks t WHERE t.task > ? AND t.task < ? ORDER BY t.task LIMIT ?`

/** Ids and stored inputs of the tasks after a number. */
export const taskTexts = (run: PagedRun, after: number, limit: number, onlyIds: boolean): TaskTexts[] =>
  run.page(after, ({ task }) => task, onlyIds ? IDS : TASKS, TASK, 'a task', limit)

export interface AttemptTexts {
  readonly seq: number
  readonly task: number
  readonly attempt: number
  readonly answer: unknown
  readonly error: unknown
  readonly logs: unknown
  readonly trajectory: unknown
}

const ATTEMPT: Columns<AttemptTexts> = {
  seq: isWhole,
  task: isWhole,
  attempt: isWhole,
  answer: isAnything,
  error: isAnything,
  logs: isAnything,
  trajectory: isAnything,
}

const ENDINGS = `SELECT seq % ${RUN_SPAN} AS seq, task % ${RUN_SPAN} AS task, attempt, answer, error, NULL AS logs, NULL AS trajectory FROM _attempts a
  WHERE a.seq > ? AND a.seq < ? ORDER BY a.seq LIMIT ?`
const LOGS = `SELECT seq % ${RUN_SPAN} AS seq, task % ${RUN_SPAN} AS task, attempt, NULL AS answer, NULL AS error, logs, CASE WHEN start IS NULL THEN trajectory END AS trajectory
  FROM _attempts a WHERE a.seq > ? AND a.seq < ? AND (a.logs IS NOT NULL OR a.trajectory IS NOT NULL) ORDER BY a.seq LIMIT ?`

/** Stored answers and errors, or logs and the steps of version 1, of the attempts after a position. */
export const attemptTexts = (run: PagedRun, after: number, limit: number, of: 'endings' | 'logs'): AttemptTexts[] =>
  run.page(after, ({ seq }) => seq, of === 'endings' ? ENDINGS : LOGS, ATTEMPT, 'an attempt', limit)

export interface StartedAttempt {
  readonly start: number
  readonly task: number
  readonly attempt: number
}

const START: Columns<StartedAttempt> = { start: isWhole, task: isWhole, attempt: isWhole }
const STARTS = `SELECT start, task % ${RUN_SPAN} AS task, attempt FROM _starts b WHERE b.task > ? AND b.task <= ? ORDER BY b.task, b.start`

/** The starts of the tasks after a number, up to and including another. */
export const startsOfTasks = (run: PagedRun, after: number, last: number): StartedAttempt[] =>
  run.rows(STARTS, START, 'a start', run.key(after), run.key(last))

const BODIES = 'SELECT key, kind, record FROM _steps WHERE key >= ? AND key < ? ORDER BY key LIMIT ?'
const PAGE = 500

type BodyRow = readonly [key: number, kind: number, record: unknown]

/** The bodies of the steps of a start, each with its index: JSON text or a value. Yields undefined after each page. */
export function* stepBodies(
  run: PagedRun,
  start: number,
): Generator<{ readonly index: number; readonly body: string | { readonly value: unknown } } | undefined> {
  const decoder = new StepBodies()
  const end = (start + 1) * STEP_SPAN
  for (let from = start * STEP_SPAN; ; ) {
    const rows = run.reading(() => {
      const statement = prepared(run.db, BODIES)
      statement.setReturnArrays(true)
      return ascending(statement.all(from, end, PAGE) as unknown as BodyRow[], ([key]) => key, from - 1, 'a step')
    })
    for (const [key, kind, record] of rows) {
      const body = isLarge(run, record)
        ? { value: undefined }
        : run.reading(() => {
            run.blobs.refill()
            return decoder.next(record, kind, run.blobs)
          })
      yield { index: key % STEP_SPAN, body }
    }
    if (rows.length < PAGE) return
    from = rows.at(-1)![0] + 1
    yield undefined
  }
}

/** Whether a stored value is a blob that is too large to be searched. */
export function isLarge(run: PagedRun, stored: unknown): boolean {
  if (typeof stored !== 'number') return false
  const row = run.row<{ size: number }>('SELECT size FROM _blobs WHERE blob = ?', { size: isWhole }, 'a blob', stored)
  return (row?.size ?? 0) > MOST_BLOB_BYTES
}
