import type { TaskStatus } from '../../task.ts'
import { ascending } from '../ascending.ts'
import { RUN_SPAN } from '../keys.ts'
import { ROLE } from '../schema.ts'
import { prepared } from '../sqlite.ts'
import {
  type Columns,
  isAnything,
  isNumber,
  isStatus,
  isText,
  isTime,
  isWhole,
  oneOf,
  orNull,
} from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

/**
 * A task and its response, without their values. A tuple, because a run may have hundreds of thousands. All numbers are those of the
 * run.
 */
export type TaskLine = [
  task: number,
  id: string,
  /** 0: it is a task of the run. */
  parent: number,
  agent: number,
  groupId: string | null,
  rollout: number | null,
  /** Null: it has no response. */
  status: TaskStatus | null,
  /** The latest attempt; 0: none so far. */
  attempt: number,
  code: string | null,
  endedAt: number | null,
  runUs: number | null,
  queuedUs: number | null,
  tokensIn: number | null,
  tokensOut: number | null,
  costUsd: number | null,
  reward: number | null,
  solved: 0 | 1 | null,
  worker: number | null,
  version: number | null,
  /** The stored error; `PagedRun.value` decodes it. */
  error: unknown,
  /** The number of the session that started the task's unfinished attempt; 0: it has none. */
  openIn: number,
]

type Cell = readonly [name: string, sql: string, test: (value: unknown) => boolean]

const NUMBER = (column: string) => `${column} % ${RUN_SPAN}`

/** In stores of version 1, tokens are only in `usage`. */
const TOKENS = (column: string, key: string) =>
  `CASE WHEN a.${column} IS NULL AND json_valid(a.usage) THEN a.usage ->> '$.${key}' ELSE a.${column} END`

const CELLS: readonly Cell[] = [
  ['task', NUMBER('t.task'), isWhole],
  ['id', 't.id', isText],
  ['parent', NUMBER('t.parent'), isWhole],
  ['agent', NUMBER('t.agent'), isWhole],
  ['group_id', 't.group_id', orNull(isText)],
  ['rollout', 't.rollout', orNull(isWhole)],
  ['status', 'a.status', orNull(isStatus)],
  ['attempt', 'coalesce(a.attempt, 0)', isWhole],
  ['error_code', 'a.error_code', orNull(isText)],
  ['ended_at', 'a.ended_at', orNull(isTime)],
  ['run_us', 'a.run_us', orNull(isNumber)],
  ['queued_us', 'a.queued_us', orNull(isNumber)],
  ['tokens_in', TOKENS('tokens_in', 'inputTokens'), orNull(isNumber)],
  ['tokens_out', TOKENS('tokens_out', 'outputTokens'), orNull(isNumber)],
  ['cost', TOKENS('cost', 'costUsd'), orNull(isNumber)],
  ['reward', 'a.reward', orNull(isNumber)],
  ['success', 'a.success', orNull(oneOf(0, 1))],
  ['worker', NUMBER('a.worker'), orNull(isWhole)],
  ['version', 'a.version', orNull(isWhole)],
  ['error', 'a.error', isAnything],
  ['open', '0', isWhole],
]

const [STATUS, ATTEMPT, WORKER, OPEN_IN] = ['status', 'attempt', 'worker', 'open'].map((name) =>
  CELLS.findIndex(([cell]) => cell === name),
) as [6, 7, 17, 20]

const SELECT = `SELECT ${CELLS.map(([, sql]) => sql).join(', ')}
  FROM _tasks t LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}`
const PAGE = `${SELECT} WHERE t.task > ? AND t.task < ? ORDER BY t.task LIMIT ?`
const ONE = `${SELECT} WHERE t.task = ?`

/** The tasks after a number, in order. */
export const taskPage = (run: PagedRun, after: number, limit: number): TaskLine[] =>
  run.reading(() =>
    ascending(linesOf(run, PAGE, run.key(after), run.range[1], limit), ([task]) => task, after, 'a task'),
  )

/** The tasks with these numbers. */
export const tasksByNumber = (run: PagedRun, numbers: Iterable<number>): TaskLine[] =>
  Array.from(numbers).flatMap((number) => linesOf(run, ONE, run.key(number)))

function linesOf(run: PagedRun, sql: string, ...values: number[]): TaskLine[] {
  return run.reading(() => {
    const statement = prepared(run.db, sql)
    statement.setReturnArrays(true)
    const lines = statement.all(...values) as unknown as TaskLine[]
    for (const line of lines) {
      check(line)
      if (line[STATUS] === null) fillOpen(run, line)
    }
    return lines
  })
}

function check(line: TaskLine): void {
  for (let at = 0; at < CELLS.length; at++) {
    const [name, , test] = CELLS[at]!
    if (!test(line[at])) throw new Error(`\`${name}\` of a task has the wrong type`)
  }
}

interface OpenAttempt {
  readonly attempt: number
  readonly worker: number | null
  readonly openIn: number
}

const OPEN: Columns<OpenAttempt> = { attempt: isWhole, worker: orNull(isWhole), openIn: isWhole }

/** The latest start or attempt of a task without a response. */
const OPEN_SQL = `SELECT attempt, ${NUMBER('worker')} AS worker, openIn FROM (
  SELECT b.attempt, b.worker, b.epoch,
    CASE WHEN EXISTS (SELECT 1 FROM _attempts x WHERE x.task = b.task AND x.start = b.start) THEN 0 ELSE b.epoch END AS openIn
    FROM _starts b WHERE b.task = ?1
  UNION ALL SELECT attempt, worker, epoch, 0 FROM _attempts WHERE task = ?1)
  ORDER BY openIn DESC, epoch DESC, attempt DESC LIMIT 1`

function fillOpen(run: PagedRun, line: TaskLine): void {
  const open = run.row(OPEN_SQL, OPEN, 'a start', run.key(line[0]))
  if (open === undefined) return
  line[ATTEMPT] = open.attempt
  line[WORKER] = open.worker
  line[OPEN_IN] = open.openIn
}
