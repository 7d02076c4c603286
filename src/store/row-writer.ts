import type { SQLInputValue } from 'node:sqlite'
import type { TaskStatus } from '../task.ts'
import { BlobWriter } from './blobs.ts'
import { type AgentRow, type AttemptRow, ROW, type Row, type TaskRow } from './messages.ts'
import { ROLE } from './schema.ts'
import type { DatabaseSync } from './sqlite.ts'
import { isStatus } from './stored-shapes.ts'
import { contentHash, type Encoded } from './values.ts'

type Counts = Record<TaskStatus, number>

/** Turns rows into statements. */
export class RowWriter {
  readonly #db: DatabaseSync
  readonly #epoch: number
  readonly #blobs: BlobWriter
  readonly #task
  readonly #attempt
  readonly #count
  readonly #seen
  readonly #latest
  readonly #agents = new Map<number, { agentName: string; params: Encoded }>()
  #seq: number
  #counts: Counts

  constructor(db: DatabaseSync, epoch: number) {
    this.#db = db
    this.#epoch = epoch
    this.#blobs = new BlobWriter(db)
    this.#task = db.prepare(
      `INSERT INTO _tasks (task, id, place, parent, parent_attempt, agent, hash, input, info, depends_on, options,
       begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
       ON CONFLICT (task) DO UPDATE SET agent = excluded.agent, hash = excluded.hash, input = excluded.input,
       info = excluded.info, options = excluded.options`,
    )
    this.#attempt = db.prepare(
      `INSERT INTO _attempts (seq, task, role, attempt, epoch, ended_at, status, queued_us, run_us, worker, error_code,
       answer, error, trajectory, logs, usage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.#count = db.prepare(`UPDATE _run SET success = ?, failed = ?, timeout = ?, crashed = ?, cancelled = ?`)
    this.#latest = db.prepare('SELECT epoch FROM _run')
    this.#seen = db.prepare('UPDATE _sessions SET seen_at = ? WHERE epoch = ?')
    this.#seq = this.#lastSeq()
    this.#counts = this.#readCounts()
  }

  write(row: Row): void {
    switch (row[0]) {
      case ROW.task:
        return this.#writeTask(row)
      case ROW.attempt:
        return this.#writeAttempt(row)
      case ROW.agent:
        return this.#writeAgent(row)
      case ROW.worker:
        this.#run('INSERT INTO _workers (worker, epoch, id, host, pid) VALUES (?, ?, ?, ?, ?)', [
          row[1],
          this.#epoch,
          row[2],
          row[3],
          row[4],
        ])
        return
      case ROW.again:
        return this.#again(row[1], row[2])
      case ROW.allRead:
        this.#run('UPDATE _run SET total = (SELECT count(*) FROM _tasks WHERE parent = 0)', [])
        return
      case ROW.begun:
        return this.#setBegun(row[1], 1)
    }
  }

  /** False: another session has begun since. */
  isLatest(): boolean {
    return (this.#latest.get() as { epoch: number }).epoch === this.#epoch
  }

  count(): void {
    const { success, failed, timeout, crashed, cancelled } = this.#counts
    this.#count.run(success, failed, timeout, crashed, cancelled)
    this.#seen.run(Date.now(), this.#epoch)
  }

  rolledBack(): void {
    this.#seq = this.#lastSeq()
    this.#counts = this.#readCounts()
  }

  #writeTask(row: TaskRow): void {
    const [, task, id, place, parent, parentAttempt, agent, input, info, dependsOn, options] = row
    const hash = contentHash({ ...this.#agents.get(agent)!, input, info, dependsOn })
    this.#task.run(
      task,
      id,
      place,
      parent,
      parentAttempt,
      agent,
      hash,
      this.#blobs.put(input),
      this.#blobs.put(info),
      dependsOn,
      options,
    )
  }

  #writeAttempt(row: AttemptRow): void {
    const [, task, isSubTask, role, attempt, endedAt, status, queuedUs, runUs, worker, code, ...values] = row
    const [answer, error, steps, logs, usage] = values
    const blobs = this.#blobs
    const seq = ++this.#seq
    const stored = blobs.put(answer)
    this.#attempt.run(
      seq,
      task,
      role,
      attempt,
      this.#epoch,
      endedAt,
      status,
      queuedUs,
      runUs,
      worker,
      code,
      stored,
      blobs.put(error),
      blobs.put(steps),
      blobs.put(logs),
      usage,
    )
    // Between two attempts it is not running.
    if (role === ROLE.retried) this.#setBegun(task, 0)
    if (role === ROLE.final && !isSubTask) this.#counts[status]++
  }

  #writeAgent([, agent, name, module, fingerprint, params]: AgentRow): void {
    this.#agents.set(agent, { agentName: name, params })
    this.#run('INSERT INTO _agents (agent, epoch, name, module, fingerprint, params) VALUES (?, ?, ?, ?, ?, ?)', [
      agent,
      this.#epoch,
      name,
      module,
      fingerprint,
      this.#blobs.put(params),
    ])
  }

  #again(task: number, fresh: boolean): void {
    const earlier = this.#db
      .prepare(
        `SELECT status FROM _attempts JOIN _tasks USING (task) WHERE task = ? AND role = ${ROLE.final} AND parent = 0`,
      )
      .get(task) as { status: TaskStatus } | undefined
    if (earlier && isStatus(earlier.status)) this.#counts[earlier.status]--
    this.#run(`UPDATE _attempts SET role = ${ROLE.superseded} WHERE task = ? AND role <= ?`, [
      task,
      fresh ? ROLE.retried : ROLE.final,
    ])
    this.#setBegun(task, 0)
  }

  #setBegun(task: number, begun: 0 | 1): void {
    this.#run('UPDATE _tasks SET begun = ? WHERE task = ?', [begun, task])
  }

  #run(sql: string, values: SQLInputValue[]): void {
    this.#db.prepare(sql).run(...values)
  }

  #lastSeq(): number {
    return (this.#db.prepare('SELECT coalesce(max(seq), 0) AS seq FROM _attempts').get() as { seq: number }).seq
  }

  #readCounts(): Counts {
    const counts = this.#db.prepare('SELECT success, failed, timeout, crashed, cancelled FROM _run').get()
    return { ...(counts as Counts) }
  }
}
