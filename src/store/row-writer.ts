import type { SQLInputValue, StatementSync } from 'node:sqlite'
import { judgementOf } from '../grade/judgement.ts'
import type { TaskStatus } from '../task.ts'
import { BlobWriter } from './blobs.ts'
import { writeReply } from './cached-replies.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import {
  type AgentRow,
  type AnswerRow,
  type AttemptRow,
  type EpisodeColumns,
  type GradeRow,
  ROW,
  type Row,
  type StartRow,
  type StepsRow,
  type TaskRow,
} from './messages.ts'
import { ROLE } from './schema.ts'
import { STEP_COLUMNS, StepEncoder } from './step-rows.ts'
import type { StoreDb } from './store-db.ts'
import { isStatus } from './stored-shapes.ts'
import { contentHash, type Encoded } from './values.ts'

type Counts = Record<TaskStatus, number>

/** A start whose attempt has not ended. */
interface OpenStart {
  readonly start: number
  readonly steps: StepEncoder
}

/** Writes the rows of one run. Call it inside a transaction. */
export class RowWriter {
  readonly #store: StoreDb
  readonly #run: number
  readonly #epoch: number
  readonly #blobs: BlobWriter
  readonly #agents = new Map<number, { agentName: string; params: Encoded }>()
  readonly #starts = new Map<number, OpenStart>()
  /** Starts that the current transaction has created, written to, and ended. */
  readonly #made: number[] = []
  readonly #written = new Set<StepEncoder>()
  readonly #ended: number[] = []
  #seq: number
  #counts: Counts

  constructor(store: StoreDb, run: number, epoch: number) {
    this.#store = store
    this.#run = run
    this.#epoch = epoch
    this.#blobs = new BlobWriter(store, run)
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
      case ROW.worker: {
        const [, worker, id, host, pid, joinedAt] = row
        return this.#execute(INSERT_WORKER, this.#key(worker), this.#epoch, id, host, pid, joinedAt)
      }
      case ROW.workerLeft: {
        const [, worker, leftAt, lost] = row
        return this.#execute(SET_WORKER_LEFT, leftAt, lost, this.#key(worker))
      }
      case ROW.again:
        return this.#again(row[1], row[2])
      case ROW.allRead:
        return this.#execute(COUNT_TASKS, this.#key(0), this.#run)
      case ROW.begun:
        return this.#setBegun(row[1], 1)
      case ROW.start:
        return this.#writeStart(row)
      case ROW.steps:
        return this.#writeSteps(row)
      case ROW.answer:
        return this.#writeAnswer(row)
      case ROW.grade:
        return this.#writeGrade(row)
      case ROW.cached:
        return writeReply(this.#store, row)
      default:
        row satisfies never
    }
  }

  /** False if another session has begun since this one. */
  isLatest(): boolean {
    const { epoch } = this.#statement('SELECT epoch FROM _run WHERE run = ?').get(this.#run) as { epoch: number }
    return epoch === this.#epoch
  }

  count(): void {
    const { success, failed, timeout, crashed, cancelled } = this.#counts
    this.#execute(UPDATE_COUNTS, success, failed, timeout, crashed, cancelled, this.#run)
    this.#execute('UPDATE _sessions SET seen_at = ? WHERE epoch = ?', Date.now(), this.#key(this.#epoch))
  }

  committed(): void {
    for (const number of this.#ended) this.#starts.delete(number)
    this.#made.length = this.#ended.length = 0
    this.#written.clear()
  }

  /** Resets the state so that the same rows can be written again. */
  rolledBack(): void {
    for (const number of this.#made) this.#starts.delete(number)
    for (const steps of this.#written) steps.loseContext()
    this.#made.length = this.#ended.length = 0
    this.#written.clear()
    this.#seq = this.#lastSeq()
    this.#counts = this.#readCounts()
  }

  #writeTask(row: TaskRow): void {
    const [, task, id, place, parent, parentAttempt, agent, input, info, dependsOn, options, groupId, rollout] = row
    const hash = contentHash({ ...this.#agents.get(agent)!, input, info, dependsOn })
    this.#execute(
      INSERT_TASK,
      this.#key(task),
      id,
      place,
      this.#key(parent),
      parentAttempt,
      this.#key(agent),
      hash,
      this.#blobs.put(input),
      this.#blobs.put(info),
      dependsOn,
      options,
      groupId,
      rollout,
    )
  }

  #writeAttempt(row: AttemptRow): void {
    const [, task, isSubTask, role, attempt, endedAt, status, queuedUs, runUs, waitedUs, worker, code, ...values] = row
    const [answer, error, logs, usage, start, episode, digest] = values
    const blobs = this.#blobs
    this.#execute(
      INSERT_ATTEMPT,
      ++this.#seq,
      this.#key(task),
      role,
      attempt,
      this.#epoch,
      endedAt,
      status,
      queuedUs,
      runUs,
      waitedUs,
      worker === null ? null : this.#key(worker),
      code,
      blobs.put(answer),
      blobs.put(error),
      blobs.put(logs),
      usage ? JSON.stringify(usage) : null,
      this.#starts.get(start)?.start ?? null,
      usage?.inputTokens ?? null,
      usage?.outputTokens ?? null,
      usage?.costUsd ?? null,
      episode?.reward ?? null,
      episode?.success ?? null,
      episode?.ending ?? null,
      blobs.put(episode?.finalObservation ?? null),
      digest,
      ...resultOfEpisode(status, episode),
    )
    if (start !== 0) this.#endStart(start, status)
    // Between two attempts the task is not running.
    if (role === ROLE.retried) this.#setBegun(task, 0)
    if (role === ROLE.final && !isSubTask) this.#counts[status]++
  }

  /** A worker that was presumed dead may still send steps and an outcome, so a crashed start stays open. */
  #endStart(number: number, status: TaskStatus): void {
    if (status === 'crashed') this.#starts.get(number)?.steps.loseContext()
    else this.#ended.push(number)
  }

  #writeStart([, number, task, attempt, worker, at]: StartRow): void {
    const start = this.#store.nextStart()
    this.#starts.set(number, { start, steps: new StepEncoder(this.#blobs) })
    this.#made.push(number)
    const by = worker === null ? null : this.#key(worker)
    this.#execute(INSERT_START, start, this.#key(task), attempt, this.#epoch, number, by, at)
  }

  #writeSteps([, number, first, steps]: StepsRow): void {
    const start = this.#starts.get(number)
    // Late: the attempt has ended, for example because its task was cancelled while its node was away.
    if (start === undefined) return
    this.#written.add(start.steps)
    for (const [index, step] of steps.entries())
      this.#execute(INSERT_STEP, ...start.steps.encode(start.start * STEP_SPAN + first + index, step))
  }

  #writeAnswer([, answer, task, attempt, service, hash, occurrence, at, value, begun]: AnswerRow): void {
    const stored = this.#blobs.put(value)
    const sql = begun ? INSERT_BEGUN : INSERT_ANSWER
    this.#execute(sql, this.#key(answer), this.#key(task), attempt, service, hash, occurrence, at, stored, begun)
  }

  #writeGrade([, grade, task, attempt, at, reward, success, grader, record]: GradeRow): void {
    const stored = this.#blobs.put(record)
    this.#execute(INSERT_GRADE, this.#key(grade), this.#key(task), attempt, at, reward, success, grader, stored)
    this.#execute(SET_GRADE, ...resultOfGrade(reward, success), this.#key(task))
  }

  #writeAgent([, agent, name, module, fingerprint, params]: AgentRow): void {
    this.#agents.set(agent, { agentName: name, params })
    const stored = this.#blobs.put(params)
    this.#execute(INSERT_AGENT, this.#key(agent), this.#epoch, name, module, fingerprint, stored)
  }

  #again(task: number, fresh: boolean): void {
    const earlier = this.#statement(FINAL_STATUS).get(this.#key(task), this.#key(0)) as
      | { status: TaskStatus }
      | undefined
    if (earlier && isStatus(earlier.status)) this.#counts[earlier.status]--
    this.#execute(SUPERSEDE, this.#key(task), fresh ? ROLE.retried : ROLE.final)
    if (fresh) this.#execute('DELETE FROM _answers WHERE task = ?', this.#key(task))
    this.#setBegun(task, 0)
  }

  #setBegun(task: number, begun: 0 | 1): void {
    this.#execute('UPDATE _tasks SET begun = ? WHERE task = ?', begun, this.#key(task))
  }

  #key(number: number): number {
    return keyOf(this.#run, number)
  }

  #execute(sql: string, ...values: SQLInputValue[]): void {
    this.#statement(sql).run(...values)
  }

  #statement(sql: string): StatementSync {
    return this.#store.statement(sql)
  }

  #lastSeq(): number {
    const last = this.#statement('SELECT max(seq) AS seq FROM _attempts WHERE seq >= ? AND seq < ?')
    return (last.get(this.#key(0), keyOf(this.#run + 1, 0)) as { seq: number | null }).seq ?? this.#key(0)
  }

  #readCounts(): Counts {
    const counts = this.#statement('SELECT success, failed, timeout, crashed, cancelled FROM _run WHERE run = ?')
    return { ...(counts.get(this.#run) as Counts) }
  }
}

type Result = [reward: number | null, solved: number | null]

/** The columns `reward` and `success` of an attempt: what its environment says, as it counts (`grade/judgement.ts`). */
function resultOfEpisode(status: TaskStatus, episode: EpisodeColumns | null): Result {
  if (status !== 'success' || episode === null) return [null, null]
  const { reward } = episode
  const success = episode.success === null ? null : episode.success === 1
  const { solved, basis } = judgementOf({ status, episode: { reward, success } })
  return [reward, basis === 'trust' ? null : Number(solved)]
}

/** The same after the attempt was graded. */
export function resultOfGrade(reward: number | null, success: number | null): Result {
  const { solved } = judgementOf({
    status: 'success',
    grade: { reward, success: success === null ? null : success === 1 },
  })
  return [reward, solved === null ? null : Number(solved)]
}

const INSERT_TASK = `INSERT INTO _tasks (task, id, place, parent, parent_attempt, agent, hash, input, info, depends_on, options,
  group_id, rollout, begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
  ON CONFLICT (task) DO UPDATE SET agent = excluded.agent, hash = excluded.hash, input = excluded.input,
  info = excluded.info, options = excluded.options, group_id = excluded.group_id, rollout = excluded.rollout`
/** An answer that will be graded has no result before, whatever its environment says. */
const UNLESS_GRADED = (value: string) =>
  `CASE WHEN (SELECT options ->> '$.grader' FROM _tasks WHERE task = ?2) IS NULL THEN ${value} END`
const INSERT_ATTEMPT = `INSERT INTO _attempts (seq, task, role, attempt, epoch, ended_at, status, queued_us, run_us, waited_us, worker,
  error_code, answer, error, logs, usage, start, tokens_in, tokens_out, cost, reward, success, ending, episode_reward,
  episode_success, final_observation, digest)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${UNLESS_GRADED('?26')}, ${UNLESS_GRADED('?27')}, ?23, ?21, ?22, ?24, ?25)`
const INSERT_START =
  'INSERT INTO _starts (start, task, attempt, epoch, number, worker, at) VALUES (?, ?, ?, ?, ?, ?, ?)'
const INSERT_STEP = `INSERT INTO _steps (${STEP_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
const ANSWER_ROW =
  'INSERT INTO _answers (answer, task, attempt, service, hash, occurrence, at, value, begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task, attempt, hash, occurrence)'
const INSERT_BEGUN = `${ANSWER_ROW} DO NOTHING`
const INSERT_ANSWER = `${ANSWER_ROW} DO UPDATE SET at = excluded.at, value = excluded.value, begun = 0`
export const INSERT_GRADE =
  'INSERT INTO _grades (grade, task, attempt, at, reward, success, grader, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
export const SET_GRADE = `UPDATE _attempts SET reward = ?, success = ? WHERE task = ? AND role = ${ROLE.final}`
const INSERT_AGENT = 'INSERT INTO _agents (agent, epoch, name, module, fingerprint, params) VALUES (?, ?, ?, ?, ?, ?)'
const INSERT_WORKER = 'INSERT INTO _workers (worker, epoch, id, host, pid, joined_at) VALUES (?, ?, ?, ?, ?, ?)'
const SET_WORKER_LEFT = 'UPDATE _workers SET left_at = ?, lost = ? WHERE worker = ?'
const COUNT_TASKS = 'UPDATE _run SET total = (SELECT count(*) FROM _tasks WHERE parent = ?) WHERE run = ?'
const UPDATE_COUNTS = 'UPDATE _run SET success = ?, failed = ?, timeout = ?, crashed = ?, cancelled = ? WHERE run = ?'
const FINAL_STATUS = `SELECT status FROM _attempts JOIN _tasks USING (task) WHERE task = ? AND role = ${ROLE.final} AND parent = ?`
const SUPERSEDE = `UPDATE _attempts SET role = ${ROLE.superseded} WHERE task = ? AND role <= ?`
