import { existsSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import type { Outcome } from '../grade/outcome.ts'
import { currentCode } from '../renamed-codes.ts'
import { plainError } from '../response.ts'
import type { TaskResponse, TaskStatus } from '../task.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { Usage } from '../trajectory/usage.ts'
import { nextKey } from './ascending.ts'
import { BlobReader } from './blobs.ts'
import { readRun } from './checks.ts'
import { type FoundRun, findRun, listRuns, runFolder, runIn } from './find-run.ts'
import { LATEST_GRADE_USAGE } from './grade-usage.ts'
import { keyOf, numberOf } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import { readOverview } from './overview.ts'
import type { RunInStore } from './read-connections.ts'
import { ROLLOUTS, rolloutOf } from './rollout-rows.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns, responseOf, workerOf } from './rows.ts'
import { RunRows } from './run-rows.ts'
import { ROLE } from './schema.ts'
import { type SettingsPart, settingsParts } from './settings-parts.ts'
import { spentUsage } from './spent-usage.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { StepTail } from './step-tail.ts'
import { storeError } from './store-errors.ts'
import { decodeError } from './stored-error.ts'
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
  orNull,
  usageOf,
} from './stored-shapes.ts'
import { StoredSteps } from './stored-steps.ts'
import type { RunOverview, StoredAttempt, StoredTask, UnfinishedAttempt } from './stored-task.ts'
import { StoredTrajectoryContext } from './stored-trajectory-context.ts'

const FROM = `FROM _attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) ${ATTEMPT_JOIN}`
const ROLES = ['final', 'retried', 'superseded'] as const

/** How many sub-tasks of one id an error names. */
const MAX_NAMED = 5

/** How many responses are read before their trajectories. */
const TRAJECTORY_BATCH = 16

type ResponseRow = AttemptColumns & { readonly seq: number; readonly id: string; readonly agentName: string }

/** Selects the responses of the run's tasks, without those of sub-tasks. */
const OF_TASKS = `a.role = ${ROLE.final} AND t.parent = ? AND a.seq > ? AND a.seq < ?`

/** Selects the first of those responses. */
const AT = `SELECT a.seq, t.id, g.name AS agentName, ${ATTEMPT_COLUMNS} ${FROM} WHERE ${OF_TASKS} ORDER BY a.seq LIMIT 1`

interface TaskColumns {
  readonly task: number
  readonly input: unknown
  readonly info: unknown
  readonly dependsOn: string | null
  readonly agentName: string
  readonly parentId: string | null
}

const TASK: Columns<TaskColumns> = {
  task: isWhole,
  input: isAnything,
  info: isAnything,
  dependsOn: orNull(isText),
  agentName: isText,
  parentId: orNull(isText),
}

const TASK_STATE: Columns<{ id: string; status: TaskStatus | 'pending' }> = {
  id: isText,
  status: (status) => status === 'pending' || isStatus(status),
}

interface StartColumns extends Pick<AttemptColumns, 'worker' | 'workerId' | 'workerHost' | 'workerPid'> {
  readonly start: number
  readonly attempt: number
  readonly at: number
  readonly epoch: number
}

const START: Columns<StartColumns> = {
  start: isWhole,
  attempt: isWhole,
  at: isTime,
  epoch: isWhole,
  worker: orNull(isWhole),
  workerId: orNull(isText),
  workerHost: orNull(isText),
  workerPid: orNull(isWhole),
}

interface OutcomeColumns {
  readonly id: string
  readonly status: TaskStatus
  readonly code: string | null
  readonly runUs: number
  readonly waitedUs: number
  readonly usage: string | null
  readonly graderUsage: string | null
  readonly error: unknown
}

const OUTCOME: Columns<OutcomeColumns> = {
  id: isText,
  status: isStatus,
  code: orNull(isText),
  runUs: isNumber,
  waitedUs: isNumber,
  usage: orNull(isText),
  graderUsage: orNull(isText),
  error: isAnything,
}

/** The part of a response that a summary needs. */
export interface BriefResponse {
  readonly id: string
  readonly status: TaskStatus
  readonly code: string | undefined
  readonly runMs: number
  readonly waitedMs: number
  readonly usage: Usage
  /** What its grader used. */
  readonly graderUsage: Usage
  /** The message of the error; read on first use. */
  readonly message: string
}

/** A response and its position in the order of commits. */
export interface SeenResponse {
  readonly seq: number
  readonly response: TaskResponse
}

export interface TrajectoriesOptions {
  readonly failed?: boolean
  readonly removed?: (response: TaskResponse) => void
}

/** A response with the input of its task. */
export interface AnsweredTask {
  readonly response: TaskResponse
  readonly input: unknown
  /** groundTruth, metadata, tools and groupId, if the task has them. */
  readonly info?: Readonly<Record<string, unknown>>
}

/**
 * Reads a run, also while it is in progress.
 *
 * @example
 * const run = RunFile.open('last')
 * for (const response of run.responses()) console.log(response.id, response.status)
 * run.close()
 */
export class RunFile implements Disposable {
  readonly path: string
  readonly runId: string
  readonly #db: DatabaseSync
  /** The number of the run in the store. */
  readonly #run: number
  readonly #from: RunInStore
  readonly #around: StoredTrajectoryContext
  readonly #blobs: BlobReader

  private constructor({ path, run }: FoundRun) {
    this.path = path
    this.#db = openForReading(path)
    try {
      const found = readRun(this.#db, run)
      this.#run = found.run
      const db = () => (this.#db.isOpen ? this.#db : undefined)
      this.#from = { path, run: { run: found.run, createdAt: found.created_at }, db }
      this.#around = new StoredTrajectoryContext(this.#from)
      this.runId = found.run_id
      this.#blobs = new BlobReader(this.#db)
    } catch (error) {
      this.#db.close()
      throw storeError(error, path, 'read')
    }
  }

  /** `run`: the id of a run, a prefix of it, `'last'`, or a path. `store`: the folder to look in. */
  static open(run: string, options: { readonly store?: string } = {}): RunFile {
    return new RunFile(findRun(run, runFolder(options.store)))
  }

  /** The ids of the runs of a folder, the newest last. */
  static list(options: { readonly store?: string } = {}): string[] {
    return listRuns(runFolder(options.store)).map(({ runId }) => runId)
  }

  /** Opens a run that `findRun` or `listRuns` returned. */
  static at(found: FoundRun): RunFile {
    return new RunFile(found)
  }

  /** Opens a run of a store by its exact id; returns undefined if there is none. */
  static in(path: string, runId: string): RunFile | undefined {
    const found = existsSync(path) ? runIn(path, runId) : undefined
    return found && new RunFile(found)
  }

  overview(): RunOverview {
    return readOverview(this.#db, this.path, this.#run)
  }

  /** The keys of the run's rows, as [first, end). */
  #range(): [from: number, before: number] {
    return [keyOf(this.#run, 0), keyOf(this.#run + 1, 0)]
  }

  /**
   * The responses of the run's tasks in the order of their commits. `after`: only those after this position. `failed`: only
   * those that did not succeed.
   */
  *seen(after = 0, { failed = false }: { readonly failed?: boolean } = {}): Generator<SeenResponse> {
    const rows = this.#all(
      `SELECT a.seq, t.id, g.name AS agentName, ${ATTEMPT_COLUMNS} ${FROM}
       WHERE ${OF_TASKS} ${failed ? `AND a.status <> 'success'` : ''} ORDER BY a.seq`,
      ...this.#tasksAfter(after),
    )
    let last = after
    for (const row of rows as Iterable<ResponseRow>)
      yield this.#reading(() => {
        this.#blobs.refill()
        last = nextKey(numberOf(row.seq), last, 'a response')
        return { seq: numberOf(row.seq), response: this.#response(row.id, row.agentName, row) }
      })
  }

  /** The response at a position that `seen` returned; undefined if there is none. */
  seenAt(seq: number): TaskResponse | undefined {
    return this.#reading(() => {
      const row = prepared(this.#db, AT).get(...this.#tasksAfter(seq - 1)) as ResponseRow | undefined
      if (row === undefined || numberOf(row.seq) !== seq) return undefined
      this.#blobs.refill()
      return this.#response(row.id, row.agentName, row)
    })
  }

  /** The responses of the run's tasks, each with the input, metadata and ground truth of its task. */
  *answered(): Generator<AnsweredTask> {
    const rows = this.#all(
      `SELECT t.id, g.name AS agentName, t.input, t.info, ${ATTEMPT_COLUMNS} ${FROM} WHERE ${OF_TASKS} ORDER BY a.seq`,
      ...this.#tasksAfter(0),
    )
    for (const row of rows as Iterable<ResponseRow & { readonly input: unknown; readonly info: unknown }>)
      yield this.#reading(() => {
        this.#blobs.refill()
        const info = this.#infoOf(row.id, row.info)
        const response = this.#response(row.id, row.agentName, row)
        return { response, input: this.#blobs.read(row.input), ...(info && { info }) }
      })
  }

  #infoOf(id: string, stored: unknown): Record<string, unknown> | undefined {
    const info = this.#blobs.read(stored)
    if (info !== undefined && !isFields(info)) throw new Error(`\`info\` of task '${id}' is not an object`)
    return info
  }

  /** The parameters of `OF_TASKS`. */
  #tasksAfter(seq: number): [parent: number, after: number, before: number] {
    return [keyOf(this.#run, 0), keyOf(this.#run, seq), keyOf(this.#run + 1, 0)]
  }

  /** What the run has spent: the usage of all attempts of its tasks and sub-tasks, also of interrupted ones, and of all grades. */
  spent(): Usage {
    return this.#reading(() => spentUsage(this.#db, this.#run))
  }

  /** The responses without their answers and trajectories, for summaries. */
  *outcomes(): Generator<BriefResponse> {
    const sql = `SELECT t.id, a.status, a.error_code AS code, a.run_us AS runUs, a.waited_us AS waitedUs, a.usage, a.error,
       ${LATEST_GRADE_USAGE} AS graderUsage ${FROM} WHERE ${OF_TASKS} ORDER BY a.seq`
    const messageOf = (error: unknown) =>
      this.#reading(() => {
        this.#blobs.refill()
        return error === null ? '' : decodeError(this.#blobs.read(error)).message
      })
    for (const row of this.#all(sql, ...this.#tasksAfter(0)))
      yield this.#reading(() => {
        const { id, status, code, runUs, waitedUs, usage, error, graderUsage } = checkedRow(row, OUTCOME, 'a response')
        return {
          ...{
            id,
            status,
            code: code === null ? undefined : currentCode(code),
            runMs: runUs / 1000,
            waitedMs: waitedUs / 1000,
            usage: usageOf(usage),
            graderUsage: usageOf(graderUsage),
          },
          get message() {
            return messageOf(error)
          },
        }
      })
  }

  /**
   * The outcome of every task of the run for evaluation, including tasks that were not run; see `summarizeOutcomes`.
   * `metadata`: also read the metadata of tasks. `content`: also identify their inputs and ground truths, for `compareRuns`.
   */
  *rollouts(wanted: { readonly metadata?: boolean; readonly content?: boolean } = {}): Generator<Outcome> {
    for (const row of this.#all(ROLLOUTS, keyOf(this.#run, 0), ...this.#range()))
      yield this.#reading(() => {
        this.#blobs.refill()
        return rolloutOf(row, this.#blobs, wanted)
      })
  }

  /** The parts of a run that was resumed with other settings; one part if it never was. */
  settingsParts(): SettingsPart[] {
    return this.#reading(() => settingsParts(this.#db, this.#run, this.#blobs))
  }

  /** The number of responses whose steps were removed to save space. */
  thinned(): number {
    const sql = `SELECT count(*) AS n FROM _attempts WHERE seq >= ? AND seq < ? AND role = ${ROLE.final} AND removed_steps IS NOT NULL`
    return this.#row<{ n: number }>(sql, { n: isWhole }, ...this.#range())!.n
  }

  /** The position of the latest attempt in the order of commits. */
  lastSeq(): number {
    const sql = 'SELECT coalesce(max(seq), 0) AS seq FROM _attempts WHERE seq >= ? AND seq < ?'
    return numberOf(this.#row<{ seq: number }>(sql, { seq: isWhole }, ...this.#range())!.seq)
  }

  *responses(): Generator<TaskResponse> {
    for (const { response } of this.seen()) yield response
  }

  /**
   * The trajectories of the run's tasks, with sub-tasks as branches, in the order in which their responses were committed.
   * `failed`: only tasks that did not succeed. Trajectories are read a few at a time, so the run may be of any size and in
   * progress. If the steps of a trajectory were removed to save space, reading throws `STORE_GONE`; with `removed`, that
   * callback is called instead.
   *
   * @example
   * for await (const trajectory of run.trajectories()) console.log(JSON.stringify(trajectory))
   */
  async *trajectories({ failed = false, removed }: TrajectoriesOptions = {}): AsyncGenerator<Trajectory> {
    for (let after = 0; ; ) {
      const batch: TaskResponse[] = []
      for (const { seq, response } of this.seen(after, { failed })) {
        batch.push(response)
        after = seq
        if (batch.length === TRAJECTORY_BATCH) break
      }
      if (batch.length === 0) return
      for (const response of batch)
        if (removed && response.removedSteps !== undefined) removed(response)
        else yield await response.toTrajectory()
    }
  }

  /** Ids and statuses of all tasks, including sub-tasks, in the order in which they were recorded. */
  *tasks(): Generator<{ readonly id: string; readonly status: TaskStatus | 'pending' }> {
    const rows = this.#all(
      `SELECT t.id, coalesce(a.status, 'pending') AS status FROM _tasks t
       LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}
       WHERE t.task >= ? AND t.task < ? ORDER BY t.task`,
      ...this.#range(),
    )
    for (const row of rows) yield this.#reading(() => checkedRow(row, TASK_STATE, 'a task'))
  }

  /**
   * One task with all its attempts. A sub-task is found by its whole id, `parent/child`, or by the id it was given, `child`. If several
   * sub-tasks were given that id, `TASK_NOT_FOUND` names them.
   */
  task(id: string): StoredTask | undefined {
    const whole = this.#taskRow(id)
    if (whole) return this.#taskOf(id, whole)
    const found = this.#subTasksNamed(id)
    if (found.length > 1)
      throw new ManyworldsError(
        'TASK_NOT_FOUND',
        `run ${this.runId} has several sub-tasks with the id '${id}'; give the whole id of one: ${found.slice(0, MAX_NAMED).join(', ')}${found.length > MAX_NAMED ? ', …' : ''}`,
      )
    return found[0] === undefined ? undefined : this.#taskOf(found[0], this.#taskRow(found[0])!)
  }

  /** Whole ids of sub-tasks that were given this id by their parents. */
  #subTasksNamed(id: string): string[] {
    const rows = this.#all(
      `SELECT DISTINCT t.id FROM _tasks t JOIN _tasks p ON p.task = t.parent
       WHERE t.task >= ? AND t.task < ? AND t.id = p.id || '/' || ? ORDER BY t.id LIMIT ${MAX_NAMED + 1}`,
      ...this.#range(),
      id,
    )
    return Array.from(rows, (row) => checkedRow<{ id: string }>(row, { id: isText }, 'a sub-task').id)
  }

  #taskRow(id: string): TaskColumns | undefined {
    return this.#row(
      `SELECT t.task, t.input, t.info, t.depends_on AS dependsOn, g.name AS agentName, p.id AS parentId
       FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent
       WHERE t.id = ? AND t.task >= ? AND t.task < ? ORDER BY t.parent_attempt DESC LIMIT 1`,
      TASK,
      id,
      ...this.#range(),
    )
  }

  #taskOf(id: string, row: TaskColumns): StoredTask {
    const attempts = [
      ...(this.#all(
        `SELECT a.seq, ${ATTEMPT_COLUMNS} ${FROM} WHERE a.task = ? ORDER BY a.seq`,
        row.task,
      ) as Iterable<ResponseRow>),
    ]
    return this.#reading(() => this.#storedTask(id, row, attempts))
  }

  #storedTask(id: string, row: TaskColumns, attempts: readonly ResponseRow[]): StoredTask {
    this.#blobs.refill()
    const responses = attempts.map((attempt) => this.#response(id, row.agentName, attempt))
    const response = responses[attempts.findIndex(({ role }) => role === ROLE.final)]
    const subTasks = this.#all('SELECT id FROM _tasks WHERE parent = ? ORDER BY task', row.task)
    const unfinished = this.#unfinished(row.task)
    const { status, sessions } = this.overview()
    const isRunning = status === 'running' && unfinished.some(({ session }) => session === sessions)
    const info = this.#infoOf(id, row.info)
    return {
      runId: this.runId,
      id,
      ...(row.parentId === null ? {} : { parentId: row.parentId }),
      agentName: row.agentName,
      input: this.#blobs.read(row.input),
      ...(info === undefined ? {} : { info }),
      ...(row.dependsOn === null ? {} : { dependsOn: idsOf(row.dependsOn) }),
      status: response?.status ?? (isRunning ? 'running' : 'pending'),
      ...(response ? { response } : {}),
      attempts: responses.map((one, index) => storedAttempt(one, attempts[index]!)),
      unfinished,
      subTaskIds: Array.from(subTasks, (child) => checkedRow<{ id: string }>(child, { id: isText }, 'a sub-task').id),
    }
  }

  /** Attempts that started and have not ended: they are in progress or were interrupted. */
  #unfinished(task: number): UnfinishedAttempt[] {
    const rows = this.#all(
      `SELECT b.start, b.attempt, b.at, b.epoch, b.worker, w.id AS workerId, w.host AS workerHost, w.pid AS workerPid
       FROM _starts b LEFT JOIN _workers w ON w.worker = b.worker WHERE b.task = ?
       AND NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start) ORDER BY b.start`,
      task,
    )
    return Array.from(rows, (row) => {
      const { start, attempt, at, epoch, ...by } = checkedRow(row, START, 'a start')
      const worker = workerOf(by)
      const trajectory = new StoredSteps(this.#from, { start }).read()
      return { attempt, session: epoch, startedAt: at, ...(worker ? { worker } : {}), trajectory }
    })
  }

  /** Follows the steps of the run: each call of `next()` returns the steps written since the last call. */
  stepTail(): StepTail {
    return new StepTail(this.#db, this.#range(), (read) => this.#reading(read))
  }

  /** Reads the same rows as the SQL views, with complete values. */
  rows(): RunRows {
    return new RunRows(this.#db, this.#run, {
      reading: (read) => this.#reading(read),
      response: (id, agentName, row) => {
        this.#blobs.refill()
        return this.#response(id, agentName, row)
      },
    })
  }

  #response(id: string, agentName: string, row: AttemptColumns): TaskResponse {
    return responseOf(id, agentName, row, { blobs: this.#blobs, from: this.#from, around: this.#around })
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #row<Row extends object>(sql: string, columns: Columns<Row>, ...values: (string | number)[]): Row | undefined {
    return this.#reading(() => {
      const row = this.#db.prepare(sql).get(...values)
      return row && checkedRow(row, columns, 'a row')
    })
  }

  *#all(sql: string, ...values: (string | number)[]): Generator<unknown> {
    const rows = this.#reading(() => this.#db.prepare(sql).iterate(...values))
    try {
      for (;;) {
        const { done, value } = this.#reading(() => rows.next())
        if (done) return
        yield value
      }
    } finally {
      // If the caller stopped early, end the statement. Each open statement slows down the next one.
      if (this.#db.isOpen) rows.return?.()
    }
  }

  #reading<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw storeError(error, this.path, 'read')
    }
  }
}

function storedAttempt(response: TaskResponse, row: AttemptColumns): StoredAttempt {
  const { status, logs, timing, worker, attempts, removedSteps } = response
  return {
    attempt: attempts,
    role: ROLES[row.role]!,
    status,
    ...(response.success ? { answer: response.answer } : { error: plainError(response.error) }),
    ...(removedSteps === undefined ? { trajectory: response.trajectory } : { trajectory: [], removedSteps }),
    logs,
    timing,
    ...(worker ? { worker } : {}),
    endedAt: row.endedAt,
  }
}
