import type { AgentRef, AnyAgent } from '../agent.ts'
import { TaskError } from '../errors.ts'
import { packParams } from '../executor/agents.ts'
import type { AnswerKey, KeptAnswer } from '../executor/answers.ts'
import { groupOf } from '../executor/intake.ts'
import type { RunRecorder } from '../executor/recorder.ts'
import { recordsOf } from '../executor/records.ts'
import type { RunSink } from '../executor/run.ts'
import type { ReadyTask } from '../executor/source.ts'
import type { AttemptRecords, Lease, TaskEntry } from '../executor/task-entry.ts'
import type { WorkerHandle } from '../executor/worker-handle.ts'
import type { TaskGrade } from '../grade/grade.ts'
import { type Grader, graderFor } from '../grade/grader.ts'
import type { Packed } from '../protocol/messages.ts'
import { makeResponse, type StepSource } from '../response.ts'
import { StepWatch } from '../runners/step-watch.ts'
import type { TaskLike, TaskResponse, WorkerName } from '../task.ts'
import { packTask } from '../task-checks.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { GroupCommit } from './group-commit.ts'
import { type Begun, type EpisodeColumns, type Opened, ROW } from './messages.ts'
import type { RunInStore } from './read-connections.ts'
import type { RecordedRunOptions } from './recorded-run.ts'
import type { RunHistory } from './run-history.ts'
import { ROLE } from './schema.ts'
import { encodeError } from './stored-error.ts'
import { endingText } from './stored-experience.ts'
import { StoredSteps } from './stored-steps.ts'
import { StoredTrajectoryContext } from './stored-trajectory-context.ts'
import { type Encoded, encode, encodePacked, type TaskContent } from './values.ts'

/** No more tasks are read while more rows, or more bytes of answers, than this are uncommitted. */
const MAX_UNCOMMITTED = 6000
const MAX_UNCOMMITTED_BYTES = 64 * 1024 * 1024

type Hooks = Pick<RecordedRunOptions, 'notice' | 'onSteps' | 'redactor' | 'grader'>

/** Turns the events of a run into rows. */
export class Recording implements RunRecorder {
  readonly #commit: GroupCommit
  readonly #history: RunHistory | undefined
  readonly #next: { agent: number; worker: number; task: number; answer: number; grade: number; start: number }
  readonly #agents = new Map<string, number>()
  readonly #agentOf = new WeakMap<object, { key: number; params: Encoded }>()
  readonly #workers = new WeakMap<WorkerName, number>()
  /** Tasks of earlier sessions that start over: their stored answers no longer count. */
  readonly #fresh = new Set<number>()
  readonly #openedAt = Date.now()
  #bytes = 0
  #full = false

  readonly #hooks: Hooks
  readonly #stepWatch: StepWatch | undefined
  /** Bytes of uncommitted steps, by worker. */
  readonly #unstored = new Map<WorkerHandle, number>()
  #closed = false
  /** Filled in when the session is committed. Responses that refer to it are not reported before that. */
  readonly #session: { -readonly [Key in keyof Begun]: Begun[Key] } = { run: 0, createdAt: 0, epoch: 0 }
  readonly #from: RunInStore
  readonly around: StoredTrajectoryContext

  constructor(commit: GroupCommit, path: string, opened: Opened, history: RunHistory | undefined, hooks: Hooks) {
    this.#commit = commit
    this.#from = { path, run: this.#session }
    this.around = new StoredTrajectoryContext(this.#from)
    this.#history = history
    this.#next = { ...opened.next, start: 1 }
    this.#hooks = hooks
    this.#stepWatch = hooks.onSteps && new StepWatch(hooks.onSteps, hooks.notice)
  }

  begun(session: Begun): void {
    Object.assign(this.#session, session)
  }

  /** Reserves numbers for `tasks` tasks; returns the first. */
  reserve(tasks: number): number {
    const first = this.#next.task
    this.#next.task += tasks
    return first
  }

  task(item: ReadyTask, record: number): void {
    const { task, index, id } = item
    const { input, info } = item.packed ?? packTask(task, index)
    const agent = this.#agentKey(task.agent, task.agent.ref, () => packParams(task.agent)).key
    this.#commit.add([
      ROW.task,
      record,
      id,
      index,
      0,
      0,
      agent,
      this.#stored(input),
      this.#stored(info),
      dependsOn(task),
      this.#text(optionsOf(task, graderFor(task, this.#hooks.grader))),
      groupOf(item) ?? null,
      item.rollout?.number ?? null,
    ])
  }

  /** The content of a task, for comparison with what an earlier session recorded. */
  contentOf(item: ReadyTask): TaskContent {
    const { task, index } = item
    const { input, info } = item.packed ?? packTask(task, index)
    const { params } = this.#agentKey(task.agent, task.agent.ref, () => packParams(task.agent))
    return {
      agentName: task.agent.name,
      params,
      input: this.#clean(encodePacked(input)),
      info: this.#clean(encodePacked(info)),
      dependsOn: dependsOn(task),
    }
  }

  /** The task has a response from an earlier session and runs again. */
  again(record: number, fresh: boolean): void {
    this.#commit.add([ROW.again, record, fresh])
    if (fresh) this.#fresh.add(record)
  }

  allRead(): void {
    this.#commit.add([ROW.allRead])
  }

  begin(entry: TaskEntry, start: () => void): void {
    this.#commit.add([ROW.begun, entry.record])
    this.#commit.afterCommit(start)
  }

  /** Wraps a sink: responses are passed on after they are committed. */
  wrapSink(sink: RunSink, wake: () => void): RunSink {
    this.#commit.committed = () => {
      if (!this.#full || this.#overFull()) return
      this.#full = false
      wake()
    }
    return {
      response: (index, response, bytes, entry) => {
        if (entry && isWorthKeeping(entry, response)) this.#attempt(entry, ROLE.final, response)
        this.#bytes += bytes
        this.#commit.afterCommit(() => {
          this.#bytes -= bytes
          sink.response(index, response, bytes, entry)
        })
      },
      full: () => {
        this.#full = this.#overFull()
        return this.#full || sink.full()
      },
      end: sink.end,
    }
  }

  retried(entry: TaskEntry, response: TaskResponse): void {
    this.#attempt(entry, ROLE.retried, response)
  }

  superseded({ entry, records }: Lease, response: TaskResponse): void {
    this.#attempt(entry, ROLE.superseded, response, records)
  }

  steps(lease: Lease, steps: PackedStep[], bytes: number): void {
    const { worker } = lease
    if (this.#closed) return worker.stored(bytes)
    const start = this.#startOf(lease, steps[0]![0] / 1000)
    // Copy the list: if responses carry their steps, the original grows before the commit.
    const rows = steps.map(ownBytes)
    this.#commit.add([ROW.steps, start, recordsOf(lease).count, rows])
    this.#unstored.set(worker, (this.#unstored.get(worker) ?? 0) + bytes)
    this.#commit.afterCommit(() => {
      if (!this.#closed) this.#isStored(worker, bytes)
      this.#stepWatch?.committed(lease, rows)
    })
  }

  /** Nothing more is written. Releases the workers that wait for their steps to be committed. */
  close(): void {
    this.#closed = true
    for (const [worker, bytes] of this.#unstored) this.#isStored(worker, bytes)
  }

  #isStored(worker: WorkerHandle, bytes: number): void {
    const left = (this.#unstored.get(worker) ?? 0) - bytes
    if (left > 0) this.#unstored.set(worker, left)
    else this.#unstored.delete(worker)
    worker.stored(bytes)
  }

  running(lease: Lease, ms: number): void {
    this.#startOf(lease, ms)
  }

  answersOf(entry: TaskEntry, attempt: number): Iterable<readonly [AnswerKey, KeptAnswer | undefined]> {
    // The answers of a task that starts over may still be in the file until the next commit.
    if (entry.record === 0 || this.#fresh.has(entry.record)) return []
    return this.#history?.answers(entry.record, attempt) ?? []
  }

  answer({ entry, attempt }: Lease, service: string, key: AnswerKey, value: Packed, safe: () => void): void {
    const { hash, occurrence } = key
    const number = this.#next.answer++
    const encoded = whole(encodePacked(value))
    this.#commit.add([ROW.answer, number, entry.record, attempt, service, hash, occurrence, Date.now(), encoded, 0])
    this.#commit.afterCommit(safe)
  }

  called({ entry, attempt }: Lease, service: string, { hash, occurrence }: AnswerKey, safe: () => void): void {
    const number = this.#next.answer++
    this.#commit.add([ROW.answer, number, entry.record, attempt, service, hash, occurrence, Date.now(), null, 1])
    this.#commit.afterCommit(safe)
  }

  /** Records a grade; calls `safe` when it is committed. `record`: the number of the task. */
  grade(record: number, attempt: number, grade: TaskGrade, safe: () => void): void {
    const { reward, success, grader } = grade
    const solved = success === null ? null : success ? 1 : 0
    const number = this.#next.grade++
    this.#commit.add([ROW.grade, number, record, attempt, Date.now(), reward, solved, grader.name, encode(grade)])
    this.#commit.afterCommit(safe)
  }

  stepsOf(entry: TaskEntry, { start }: AttemptRecords): StepSource {
    return new StoredSteps(this.#from, { session: this.#session, task: entry.record, number: start })
  }

  /** Returns the start number of the lease. Records the start if that has not happened yet. */
  #startOf(lease: Lease, ms: number): number {
    const records = recordsOf(lease)
    if (records.start === 0) {
      records.start = this.#next.start++
      const { entry, attempt, worker } = lease
      const at = Date.now() - Math.round(ms)
      this.#commit.add([ROW.start, records.start, entry.record, attempt, this.#workerKey(worker.name), at])
    }
    return records.start
  }

  subTask(child: TaskEntry, instead: TaskEntry | undefined): TaskResponse | undefined {
    const parent = child.parent!
    const { agent } = child
    const { key, params } = this.#agentKey(agent, agent.ref, () => agent.params)
    const input = this.#stored(child.input)
    const info = this.#stored(child.options.info)
    const content = { agentName: agent.ref.name, params, input, info, dependsOn: null }
    const known = instead ? undefined : this.#history?.subTask(child.id, parent.record, parent.attempts + 1, content)
    if (known?.final) return known.response
    child.record = instead?.record ?? known?.record ?? this.#next.task++
    const fresh = instead !== undefined || known?.fresh === true
    if (fresh || known?.response) this.again(child.record, fresh)
    if (known?.startedBefore && child.options.neverRerun) return this.#crashed(child, known.startedBefore)
    this.#commit.add([
      ROW.task,
      child.record,
      child.id,
      null,
      parent.record,
      parent.attempts + 1,
      key,
      input,
      info,
      null,
      null,
      null,
      null,
    ])
    return undefined
  }

  subTaskEnded(child: TaskEntry, response: TaskResponse): void {
    if (isWorthKeeping(child, response)) this.#attempt(child, ROLE.final, response)
  }

  /** The response of a sub-task with `rerun: 'never'` that an earlier session has started. */
  #crashed(child: TaskEntry, startedBefore: string): TaskResponse {
    const response = makeResponse(
      {
        id: child.id,
        agentName: child.agent.ref.name,
        usage: {},
        timing: { queuedMs: 0, runMs: 0, waitedMs: 0 },
        attempts: 1,
        worker: undefined,
        logs: [],
        restored: true,
      },
      { success: false, status: 'crashed', error: new TaskError('WORKER_CRASHED', startedBefore) },
      [],
      this.around,
    )
    this.#attempt(child, ROLE.final, response)
    return response
  }

  /** Encodes a packed value for storage, without secrets. */
  #stored(packed: unknown): Encoded {
    return whole(this.#clean(encodePacked(packed)))
  }

  /** Removes the secrets of the run. */
  #clean(encoded: Encoded): Encoded {
    const { redactor } = this.#hooks
    return redactor ? redactor.encoded(encoded) : encoded
  }

  #text(json: string | null): string | null {
    return this.#clean(json) as string | null
  }

  #overFull(): boolean {
    return this.#commit.uncommitted > MAX_UNCOMMITTED || this.#bytes > MAX_UNCOMMITTED_BYTES
  }

  #attempt(entry: TaskEntry, role: number, response: TaskResponse, records = entry.records): void {
    const { logs, timing, status } = response
    const error = response.success ? undefined : response.error
    const answer = response.success
      ? role === ROLE.final
        ? this.#stored(entry.answer)
        : whole(this.#clean(encode(response.answer)))
      : null
    this.#commit.add([
      ROW.attempt,
      entry.record,
      entry.parent !== undefined,
      role,
      response.attempts,
      Date.now(),
      status,
      Math.round(timing.queuedMs * 1000),
      Math.round(timing.runMs * 1000),
      Math.round(timing.waitedMs * 1000),
      this.#workerKey(response.worker),
      error?.code ?? null,
      answer,
      error === undefined ? null : encodeError(error),
      logs.length === 0 ? null : JSON.stringify(logs),
      hasKeys(response.usage) ? response.usage : null,
      records?.start ?? 0,
      episodeColumns(response, answer, (value) => this.#clean(encode(value))),
      response.digest ?? null,
    ])
  }

  #agentKey(identity: AnyAgent | object, ref: AgentRef, packed: () => unknown): { key: number; params: Encoded } {
    let known = this.#agentOf.get(identity)
    if (known === undefined) {
      const params = this.#stored(packed())
      const content = `${ref.module}\0${ref.name}\0${ref.fingerprint}\0${typeof params === 'object' && params ? Buffer.from(params).toString('latin1') : params}`
      let key = this.#agents.get(content)
      if (key === undefined) {
        key = this.#next.agent++
        this.#agents.set(content, key)
        this.#warnOfOtherCode(ref)
        this.#commit.add([ROW.agent, key, ref.name, ref.module, ref.fingerprint ?? null, params])
      }
      known = { key, params }
      this.#agentOf.set(identity, known)
    }
    return known
  }

  #warnOfOtherCode({ name, module, fingerprint }: AgentRef): void {
    const before = this.#history?.fingerprint(name, module)
    if (before === undefined || before === null || fingerprint === undefined || before === fingerprint) return
    this.#hooks.notice(
      `the code of agent '${name}' has changed since the run started; finished tasks keep the answers of the old code`,
    )
  }

  /** A worker has joined during the run. Workers that joined before are recorded with their first attempt. */
  joined(worker: WorkerName): void {
    if (!this.#closed) this.#workerKey(worker, Date.now())
  }

  left(worker: WorkerName, lost: string | undefined): void {
    const key = this.#workers.get(worker)
    if (key === undefined || this.#closed) return
    const { redactor } = this.#hooks
    const why = lost === undefined ? null : redactor ? redactor.text(lost) : lost
    this.#commit.add([ROW.workerLeft, key, Date.now(), why])
  }

  #workerKey(worker: WorkerName | undefined, joinedAt = this.#openedAt): number | null {
    if (worker === undefined) return null
    let key = this.#workers.get(worker)
    if (key === undefined) {
      key = this.#next.worker++
      this.#workers.set(worker, key)
      this.#commit.add([ROW.worker, key, worker.id, worker.host, worker.pid ?? null, joinedAt])
    }
    return key
  }
}

function episodeColumns(
  { episode }: TaskResponse,
  answer: Encoded,
  stored: (value: unknown) => Encoded,
): EpisodeColumns | null {
  if (episode === undefined) return null
  const { ending, reward, success } = episode
  const finalObservation = stored(episode.finalObservation)
  return {
    ending: endingText(ending),
    reward,
    success: success === null ? null : success ? 1 : 0,
    // The answer of a step agent is its last observation, so don't store it twice.
    finalObservation: finalObservation === answer ? null : finalObservation,
  }
}

/** A task that was cancelled before it ran stays pending in the store. */
const isWorthKeeping = (entry: TaskEntry, response: TaskResponse) =>
  response.status !== 'cancelled' || entry.worker !== undefined || response.error.code === 'DEPENDENCY_FAILED'

const dependsOn = (task: TaskLike) =>
  task.dependsOn !== undefined && task.dependsOn.length > 0 ? JSON.stringify(task.dependsOn) : null

/** The name of the grader tells readers that an answer without a grade waits for one. */
function optionsOf({ timeoutMs, maxAttempts, requires, rerun }: TaskLike, grader: Grader | undefined): string | null {
  const options = { timeoutMs, maxAttempts, requires, rerun, grader: grader?.name }
  return Object.values(options).every((value) => value === undefined) ? null : JSON.stringify(options)
}

/** Copies bytes that are a view of a larger buffer: postMessage would clone the whole buffer. */
const whole = (encoded: Encoded): Encoded =>
  encoded instanceof Uint8Array && encoded.byteLength < encoded.buffer.byteLength ? new Uint8Array(encoded) : encoded

const ownBytes = (step: PackedStep): PackedStep => {
  const body = step[1]
  if (typeof body === 'string' || body.byteLength === body.buffer.byteLength) return step
  const own: PackedStep = [...step]
  own[1] = new Uint8Array(body)
  return own
}

function hasKeys(object: object): boolean {
  for (const _ in object) return true
  return false
}
