import { existsSync, statSync } from 'node:fs'
import { plainError } from '../response.ts'
import type { TaskResponse, TaskStatus } from '../task.ts'
import { BlobReader } from './blobs.ts'
import { refuseOtherSchema } from './checks.ts'
import { findRun, runFiles, runFolder } from './find-run.ts'
import { isLocked } from './lock.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns, responseOf } from './rows.ts'
import { ROLE } from './schema.ts'
import { DatabaseSync } from './sqlite.ts'
import { corrupt, storeError } from './store-errors.ts'
import type { RunOverview, StoredAttempt, StoredTask } from './stored-task.ts'

const FROM = `FROM _attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) ${ATTEMPT_JOIN}`
const ROLES = ['final', 'retried', 'superseded'] as const

type ResponseRow = AttemptColumns & { readonly seq: number; readonly id: string; readonly agentName: string }

/** A response with its place in the order in which responses were committed. */
export interface SeenResponse {
  readonly seq: number
  readonly response: TaskResponse
}

/**
 * Reads a run file, also while the run is going on.
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
  readonly #blobs: BlobReader

  private constructor(path: string) {
    this.path = path
    let db: DatabaseSync | undefined
    try {
      db = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
      refuseOtherSchema(db, path)
      const run = db.prepare('SELECT run_id FROM _run').get() as { run_id: string } | undefined
      if (!run) throw corrupt(path, 'it has no run in it')
      this.#db = db
      this.runId = run.run_id
      this.#blobs = new BlobReader(db)
    } catch (error) {
      db?.close()
      throw storeError(error, path, 'read')
    }
  }

  /** `run`: the id of a run, the beginning of one, `'last'`, or a path. `store`: the folder to look in. */
  static open(run: string, options: { readonly store?: string } = {}): RunFile {
    return new RunFile(findRun(run, runFolder(options.store)))
  }

  /** The run files of a folder, the newest last. */
  static list(options: { readonly store?: string } = {}): string[] {
    return runFiles(runFolder(options.store))
  }

  overview(): RunOverview {
    const seen = this.#overview()
    // It may have ended, or begun, while we looked.
    return seen.status === 'died' ? this.#overview() : seen
  }

  #overview(): RunOverview {
    const locked = isLocked(this.path)
    const run = this.#get(
      `SELECT r.*, s.started_at AS session_started, s.ended_at, s.ending, s.error, s.config ->> '$.engineName' AS engine
       FROM _run r LEFT JOIN _sessions s ON s.epoch = r.epoch`,
    ) as Record<string, never>
    const { success, failed, timeout, crashed, cancelled } = run
    const { elapsed } = this.#get('SELECT sum(coalesce(ended_at, seen_at) - started_at) AS elapsed FROM _sessions') as {
      elapsed: number | null
    }
    const status = locked ? 'running' : ((run.ending ?? 'died') as RunOverview['status'])
    return {
      runId: this.runId,
      file: this.path,
      status,
      startedAt: run.created_at!,
      elapsedMs: elapsed ?? 0,
      ...(locked || run.ended_at === null ? {} : { endedAt: run.ended_at! }),
      ...(run.total === null ? {} : { total: run.total! }),
      counts: { success: success!, failed: failed!, timeout: timeout!, crashed: crashed!, cancelled: cancelled! },
      ...(run.script === null ? {} : { script: run.script! }),
      ...(run.engine === null ? {} : { engineName: run.engine! }),
      sessions: run.epoch!,
      ...(run.error === null || locked ? {} : { error: run.error! }),
      bytes: [this.path, `${this.path}-wal`].reduce(
        (sum, file) => sum + (existsSync(file) ? statSync(file).size : 0),
        0,
      ),
    }
  }

  /** The responses of the run's tasks, in the order in which they were committed; `after`: only what came later than that. */
  *seen(after = 0): Generator<SeenResponse> {
    const rows = this.#all(
      `SELECT a.seq, t.id, g.name AS agentName, ${ATTEMPT_COLUMNS} ${FROM}
       WHERE a.role = ${ROLE.final} AND t.parent = 0 AND a.seq > ? ORDER BY a.seq`,
      after,
    )
    for (const row of rows as Iterable<ResponseRow>)
      yield { seq: row.seq, response: responseOf(row.id, row.agentName, row, this.#blobs) }
  }

  /** The place of the latest response. */
  lastSeq(): number {
    return (this.#get('SELECT coalesce(max(seq), 0) AS seq FROM _attempts') as { seq: number }).seq
  }

  *responses(): Generator<TaskResponse> {
    for (const { response } of this.seen()) yield response
  }

  /** Ids and states of all tasks, those of sub-tasks too, in the order in which they were read. */
  *tasks(): Generator<{ readonly id: string; readonly status: TaskStatus | 'pending' }> {
    yield* this.#all(
      `SELECT t.id, coalesce(a.status, 'pending') AS status FROM _tasks t
       LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final} ORDER BY t.task`,
    ) as Iterable<{ id: string; status: TaskStatus }>
  }

  /** One task with all that is known of it; a sub-task by its whole id. */
  task(id: string): StoredTask | undefined {
    const row = this.#get(
      `SELECT t.task, t.input, t.info, t.depends_on AS dependsOn, g.name AS agentName, p.id AS parentId
       FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent
       WHERE t.id = ? ORDER BY t.parent_attempt DESC LIMIT 1`,
      id,
    ) as
      | { task: number; input: unknown; info: unknown; dependsOn: string; agentName: string; parentId: string }
      | undefined
    if (!row) return undefined
    const attempts = [
      ...(this.#all(
        `SELECT a.seq, ${ATTEMPT_COLUMNS} ${FROM} WHERE a.task = ? ORDER BY a.seq`,
        row.task,
      ) as Iterable<ResponseRow>),
    ]
    const responses = attempts.map((attempt) => responseOf(id, row.agentName, attempt, this.#blobs))
    const response = responses[attempts.findIndex(({ role }) => role === ROLE.final)]
    const subTasks = this.#all('SELECT id FROM _tasks WHERE parent = ? ORDER BY task', row.task) as Iterable<{
      id: string
    }>
    return {
      runId: this.runId,
      id,
      ...(row.parentId === null ? {} : { parentId: row.parentId }),
      agentName: row.agentName,
      input: this.#blobs.read(row.input),
      ...(row.info === null ? {} : { info: this.#blobs.read(row.info) as Record<string, unknown> }),
      ...(row.dependsOn === null ? {} : { dependsOn: JSON.parse(row.dependsOn) as string[] }),
      status: response?.status ?? 'pending',
      ...(response ? { response } : {}),
      attempts: responses.map((one, index) => storedAttempt(one, attempts[index]!)),
      subTaskIds: [...subTasks].map((child) => child.id),
    }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #get(sql: string, ...values: (string | number)[]): unknown {
    return this.#reading(() => this.#db.prepare(sql).get(...values))
  }

  *#all(sql: string, ...values: (string | number)[]): Generator<unknown> {
    const rows = this.#reading(() => this.#db.prepare(sql).iterate(...values))
    for (;;) {
      const { done, value } = this.#reading(() => rows.next())
      if (done) return
      yield value
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
  const { status, trajectory, logs, timing, worker, attempts } = response
  return {
    attempt: attempts,
    role: ROLES[row.role]!,
    status,
    ...(response.success ? { answer: response.answer } : { error: plainError(response.error) }),
    trajectory,
    logs,
    timing,
    ...(worker ? { worker } : {}),
    endedAt: row.endedAt,
  }
}
