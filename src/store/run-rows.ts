import type { TaskResponse, TaskStatus } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import { ascending } from './ascending.ts'
import { BlobReader } from './blobs.ts'
import { keyOf, numberOf } from './keys.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns } from './rows.ts'
import { ROLE } from './schema.ts'
import type { DatabaseSync } from './sqlite.ts'
import {
  type Columns,
  checkedRow,
  idsOf,
  isAnything,
  isNumber,
  isStatus,
  isText,
  isWhole,
  oneOf,
  orNull,
} from './stored-shapes.ts'
import { stepsIn } from './stored-steps.ts'

/** Rows per read. No statement stays open between two reads, so a run in progress is not delayed. */
const PAGE = 500

/** A response, with more columns of its attempt. */
export interface ResponseRow {
  readonly seq: number
  /** The number of the session. */
  readonly epoch: number
  /** Milliseconds since 1970. */
  readonly endedAt: number
  /** The reward of the attempt as a whole: its grade or, if it was not graded, the reward of its environment. */
  readonly reward: number | null
  readonly success: boolean | null
  /** The version of the policy that the attempt used. */
  readonly version: number | null
  /** How the episode ended, as text. */
  readonly ending: string | null
  readonly response: TaskResponse
  /** Reads the steps one by one. Faster than `response.steps()` if you read many responses. */
  steps(): Iterable<Step>
}

export interface StepRow {
  readonly id: string
  readonly attempt: number
  /** Whether the attempt is the task's response. */
  readonly isFinal: boolean
  readonly step: Step
}

export interface TaskRow {
  readonly id: string
  readonly place: number | null
  readonly parentId: string | null
  readonly parentAttempt: number | null
  readonly agentName: string
  readonly status: TaskStatus | 'pending'
  readonly input: unknown
  readonly info: unknown
  readonly dependsOn: readonly string[] | null
  readonly options: unknown
  readonly hash: string
  readonly groupId: string | null
  readonly rollout: number | null
}

export interface RowsOptions {
  /** Also rows of sub-tasks. Default false. */
  readonly subTasks?: boolean
}

interface ResponseColumns {
  readonly seq: number
  readonly epoch: number
  readonly total: number | null
  readonly solved: number | null
  readonly version: number | null
}

const RESPONSE: Columns<ResponseColumns> = {
  seq: isWhole,
  epoch: isWhole,
  total: orNull(isNumber),
  solved: oneOf(0, 1, null),
  version: orNull(isWhole),
}

interface TaskColumns extends Omit<TaskRow, 'dependsOn' | 'options'> {
  readonly task: number
  readonly dependsOn: string | null
  readonly options: string | null
}

const TASK: Columns<TaskColumns> = {
  task: isWhole,
  id: isText,
  place: orNull(isWhole),
  parentId: orNull(isText),
  parentAttempt: orNull(isWhole),
  agentName: isText,
  status: (status) => status === 'pending' || isStatus(status),
  input: isAnything,
  info: isAnything,
  dependsOn: orNull(isText),
  options: orNull(isText),
  hash: isText,
  groupId: orNull(isText),
  rollout: orNull(isWhole),
}

interface StepsColumns {
  readonly start: number | null
  readonly trajectory: unknown
  readonly attempt: number
  readonly isFinal: number
}

const STEPS: Columns<StepsColumns> = {
  start: orNull(isWhole),
  trajectory: isAnything,
  attempt: isWhole,
  isFinal: oneOf(0, 1),
}

/** What RunFile provides for reading rows. */
interface RowReader {
  /** Turns any error into a ManyworldsError. */
  reading<T>(read: () => T): T
  response(id: string, agentName: string, row: AttemptColumns): TaskResponse
}

/** Reads the same rows as the SQL views of a run, one at a time and with complete values. Exports are built from it. */
export class RunRows {
  readonly #db: DatabaseSync
  readonly #run: number
  readonly #reader: RowReader
  readonly #blobs: BlobReader

  constructor(db: DatabaseSync, run: number, reader: RowReader) {
    this.#db = db
    this.#run = run
    this.#reader = reader
    this.#blobs = new BlobReader(db)
  }

  /** Responses in the order of their commits, up to the latest one at the time of the call. */
  *responses({ subTasks = false }: RowsOptions = {}): Generator<ResponseRow> {
    const sql = `SELECT a.seq, t.id, g.name AS agentName, a.epoch, a.reward AS total, a.success AS solved, a.version, ${ATTEMPT_COLUMNS}
      FROM _attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) ${ATTEMPT_JOIN}
      WHERE a.seq > ? AND a.seq <= ? AND a.role = ${ROLE.final} ${this.#which(subTasks)} ORDER BY a.seq LIMIT ${PAGE}`
    const last = this.#last('seq', '_attempts')
    for (const row of this.#pages<AttemptColumns & { id: string; agentName: string }>(sql, 'seq', last))
      yield this.#reading(() => {
        const { seq, epoch, total, solved, version } = checkedRow<ResponseColumns>(row, RESPONSE, 'a response')
        const response = this.#reader.response(row.id, row.agentName, row)
        return {
          ...{ seq: numberOf(seq), epoch, endedAt: row.endedAt, reward: total, version, ending: row.ending, response },
          success: solved === null ? null : solved === 1,
          steps: () => this.#stepsIn(row.start, row.trajectory),
        }
      })
  }

  /** Steps by task and attempt, including attempts that are in progress, were interrupted or are superseded. */
  *steps({ subTasks = false }: RowsOptions = {}): Generator<StepRow> {
    const sql = `SELECT t.task, t.id FROM _tasks t WHERE t.task > ? AND t.task <= ? ${this.#which(subTasks)}
      ORDER BY t.task LIMIT ${PAGE}`
    const isFinal = `EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start AND a.role = ${ROLE.final})`
    // In files of version 1 the steps are a value of the attempt.
    const starts =
      this.#db.prepare(`SELECT start, NULL AS trajectory, attempt, ${isFinal} AS isFinal, 0 AS seq FROM _starts b
      WHERE b.task = ? UNION ALL SELECT NULL, trajectory, attempt, role = ${ROLE.final}, seq FROM _attempts
      WHERE task = ? AND start IS NULL AND trajectory IS NOT NULL ORDER BY seq, start`)
    for (const row of this.#pages<{ task: number; id: string }>(sql, 'task', this.#last('task', '_tasks'))) {
      const { task, id } = this.#reading(() => checkedRow<typeof row>(row, { task: isWhole, id: isText }, 'a task'))
      for (const begun of this.#reading(() => starts.all(task, task))) yield* this.#stepsOf(id, begun)
    }
  }

  *#stepsOf(id: string, begun: unknown): Generator<StepRow> {
    const { start, trajectory, attempt, isFinal } = this.#reading(() =>
      checkedRow<StepsColumns>(begun, STEPS, 'a start'),
    )
    for (const step of this.#stepsIn(start, trajectory)) yield { id, attempt, isFinal: isFinal === 1, step }
  }

  *#stepsIn(start: number | null, trajectory: unknown): Generator<Step> {
    if (start === null && trajectory === null) return
    const steps = stepsIn(this.#db, start === null ? { value: trajectory } : { start })
    for (;;) {
      const { done, value } = this.#reading(() => steps.next())
      if (done) return
      yield value.step
    }
  }

  /** Tasks in the order in which they were read. */
  *tasks({ subTasks = false }: RowsOptions = {}): Generator<TaskRow> {
    const sql = `SELECT t.task, t.id, t.place, p.id AS parentId, nullif(t.parent_attempt, 0) AS parentAttempt, g.name AS agentName,
      coalesce((SELECT status FROM _attempts a WHERE a.task = t.task AND a.role = ${ROLE.final}), 'pending') AS status,
      t.input, t.info, t.depends_on AS dependsOn, t.options, lower(hex(t.hash)) AS hash, t.group_id AS groupId, t.rollout
      FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent
      WHERE t.task > ? AND t.task <= ? ${this.#which(subTasks)} ORDER BY t.task LIMIT ${PAGE}`
    for (const row of this.#pages<object>(sql, 'task', this.#last('task', '_tasks')))
      yield this.#reading(() => {
        this.#blobs.refill()
        const { task: _, input, info, dependsOn, options, ...columns } = checkedRow<TaskColumns>(row, TASK, 'a task')
        return {
          ...columns,
          input: this.#blobs.read(input),
          info: this.#blobs.read(info),
          dependsOn: dependsOn === null ? null : idsOf(dependsOn),
          options: options === null ? undefined : JSON.parse(options),
        }
      })
  }

  #reading<T>(read: () => T): T {
    return this.#reader.reading(read)
  }

  #which(subTasks: boolean): string {
    return subTasks ? '' : `AND t.parent = ${keyOf(this.#run, 0)}`
  }

  /** The key of the latest row of the run. */
  #last(key: string, table: string): number {
    const range = [keyOf(this.#run, 0), keyOf(this.#run + 1, 0)] as const
    const sql = `SELECT coalesce(max(${key}), 0) AS last FROM ${table} WHERE ${key} >= ? AND ${key} < ?`
    return this.#reading(() => (this.#db.prepare(sql).get(...range) as { last: number }).last)
  }

  /** Reads rows page by page, in ascending order of their keys, up to `last`. */
  *#pages<Row extends object>(sql: string, key: string, last: number): Generator<Row> {
    const page = this.#reading(() => this.#db.prepare(sql))
    for (let after = keyOf(this.#run, 0); ; ) {
      const rows = this.#reading(() =>
        ascending(page.all(after, last) as Record<string, unknown>[], (row) => row[key], after, 'a row'),
      )
      yield* rows as Iterable<Row>
      if (rows.length < PAGE) return
      after = rows.at(-1)![key] as number
    }
  }
}
