import { ManyworldsError } from '../errors.ts'
import type { AnswerKey, KeptAnswer } from '../executor/answers.ts'
import { pack } from '../protocol/pack.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { TaskResponse, TaskStatus } from '../task.ts'
import { differing } from '../text/differing.ts'
import type { Usage } from '../trajectory/usage.ts'
import { BlobReader } from './blobs.ts'
import { readRun } from './checks.ts'
import { keyOf, numberOf, RUN_SPAN } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import type { RunInStore } from './read-connections.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns, responseOf } from './rows.ts'
import { isSameValue } from './same-value.ts'
import { ROLE } from './schema.ts'
import {
  answerSettings,
  changesIn,
  changeText,
  goesOnText,
  type SettingChange,
  settingChanges,
} from './settings-changes.ts'
import { spentUsage } from './spent-usage.ts'
import type { DatabaseSync } from './sqlite.ts'
import { storeError } from './store-errors.ts'
import { type Columns, checkedRow, isAnything, isBytes, isText, isWhole, orNull } from './stored-shapes.ts'
import { StoredTrajectoryContext } from './stored-trajectory-context.ts'
import { contentHash, decode, type Encoded, type TaskContent } from './values.ts'

interface TaskColumns {
  readonly task: number
  readonly hash: Uint8Array
  readonly begun: number
  readonly place: number | null
  readonly agentName: string
  readonly input: unknown
  readonly info: unknown
  readonly dependsOn: string | null
  readonly params: unknown
}

const TASK: Columns<TaskColumns> = {
  task: isWhole,
  hash: isBytes,
  begun: isWhole,
  place: orNull(isWhole),
  agentName: isText,
  input: isAnything,
  info: isAnything,
  dependsOn: orNull(isText),
  params: isAnything,
}

const ANSWER: Columns<{ hash: Uint8Array; occurrence: number; value: unknown; begun: number }> = {
  begun: isWhole,
  hash: isBytes,
  occurrence: isWhole,
  value: isAnything,
}

const CHARGED_TASK: Columns<TaskColumns & Pick<Row, 'charged'>> = { ...TASK, charged: orNull(isWhole) }

interface Row extends TaskColumns, Partial<AttemptColumns> {
  /** Failed attempts that count, from interrupted sessions. */
  readonly charged: number | null
}

/** The recorded outcome of a task from earlier sessions. */
export interface StoredOutcome {
  readonly record: number
  readonly attempts: number
  readonly response: TaskResponse | undefined
  /** The approximate size of the response. */
  readonly bytes: number
  /** Why a task with `rerun: 'never'` must not start: an earlier session has started it. */
  readonly startedBefore: string | undefined
  /** The response is final. Otherwise the task runs again. */
  readonly final: boolean
  /** The task starts over: its earlier attempts, and the service answers stored for them, no longer count. */
  readonly fresh: boolean
  /** The task was accepted with other params of its agent than those recorded. */
  readonly isOther?: boolean
}

const DRIVER_DIED = "the driver died while this task may have been running, and rerun: 'never' forbids another attempt"
const WAS_CANCELLED =
  "the task was cancelled after it had started, and rerun: 'never' forbids another attempt (retryFailed, --retry-failed, allows it)"

interface Options {
  readonly retryFailed: boolean
  readonly acceptChanges: boolean
  readonly notice: (line: string) => void
  readonly redactor: Redactor | undefined
}

/** Reads what earlier sessions of a run recorded. Tasks are looked up one by one, so memory does not grow with the run. */
export class RunHistory {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #run: number
  readonly #from: RunInStore
  readonly #around: StoredTrajectoryContext
  readonly #runId: string
  readonly #retryFailed: boolean
  readonly #acceptChanges: boolean
  /** Params of agents that earlier sessions with `acceptChanges` used, by name. */
  readonly #acceptedParams = new Map<string, unknown[]>()
  /** Agents whose other params were accepted and named. */
  readonly #toldOf = new Set<string>()
  readonly #notice: (line: string) => void
  readonly #redactor: Redactor | undefined
  readonly #blobs: BlobReader
  readonly #find
  readonly #match

  constructor(path: string, run: number, runId: string, { retryFailed, acceptChanges, redactor, notice }: Options) {
    this.#notice = notice
    this.#redactor = redactor
    this.#run = run
    this.#path = path
    this.#runId = runId
    this.#retryFailed = retryFailed
    this.#acceptChanges = acceptChanges
    this.#db = openForReading(path)
    this.#blobs = new BlobReader(this.#db)
    const createdAt = this.#reading(() => readRun(this.#db, run)).created_at
    this.#from = { path, run: { run, createdAt } }
    this.#around = new StoredTrajectoryContext(this.#from)
    const task = `t.task, t.hash, t.begun, t.place, g.name AS agentName, t.input, t.info, t.depends_on AS dependsOn, g.params`
    const found = `FROM _tasks t JOIN _agents g USING (agent)`
    this.#find = this.#db.prepare(
      `SELECT ${task}, (SELECT max(attempt) FROM _attempts WHERE task = t.task AND role = ${ROLE.retried}) AS charged,
       ${ATTEMPT_COLUMNS} ${found} LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final} ${ATTEMPT_JOIN}
       WHERE t.id = ? AND t.parent = ? AND t.parent_attempt = ?`,
    )
    this.#match = this.#db.prepare(`SELECT ${task} ${found} WHERE t.id = ? AND t.parent = ? AND t.parent_attempt = 0`)
  }

  /** Returns the number of the task; undefined if it is not recorded. Throws RESUME_MISMATCH if it differs from the recorded one. */
  check(id: string, content: TaskContent, place: number | undefined): number | undefined {
    return this.#reading(() => {
      const row = this.#match.get(id, keyOf(this.#run, 0))
      if (row) this.#compare(id, checkedRow(row, TASK, `task '${id}'`), content, place)
      return row && numberOf(row.task as number)
    })
  }

  task(id: string, content: TaskContent, place: number | undefined): StoredOutcome | undefined {
    return this.#reading(() => {
      const row = this.#row(id, 0, 0)
      if (!row) return undefined
      const isOther = this.#compare(id, row, content, place)
      return { ...this.#known(id, row), isOther }
    })
  }

  subTask(id: string, parent: number, parentAttempt: number, content: TaskContent): StoredOutcome | undefined {
    return this.#reading(() => {
      const row = this.#row(id, parent, parentAttempt)
      if (!row) return undefined
      const known = this.#known(id, row)
      // A parent may give its sub-task another input when it runs again.
      return this.#same(row, content) ? known : { ...known, final: false, fresh: true }
    })
  }

  /** Answers of durable services that an earlier session recorded for an attempt. */
  answers(record: number, attempt: number): [AnswerKey, KeptAnswer | undefined][] {
    const sql = 'SELECT hash, occurrence, value, begun FROM _answers WHERE task = ? AND attempt = ?'
    return this.#reading(() => {
      this.#blobs.refill()
      return this.#db
        .prepare(sql)
        .all(keyOf(this.#run, record), attempt)
        .map((row) => {
          const { hash, occurrence, value, begun } = checkedRow(row, ANSWER, 'an answer')
          const key = { hash: Buffer.from(hash), occurrence }
          return [key, begun === 1 ? undefined : { value: pack(this.#blobs.read(value)) }]
        })
    })
  }

  /** What earlier sessions have spent. */
  spent(): Usage {
    return this.#reading(() => spentUsage(this.#db, this.#run, true))
  }

  /** Ids of the run's tasks, in submission order. */
  *ids(): Generator<string> {
    const rows = this.#reading(() =>
      this.#db.prepare('SELECT id FROM _tasks WHERE parent = ? ORDER BY place').all(keyOf(this.#run, 0)),
    )
    for (const row of rows) yield String(row.id)
  }

  /** The number of recorded tasks, and the total if it was known. */
  size(): { recorded: number; total: number | null } {
    const count = 'SELECT (SELECT count(*) FROM _tasks WHERE parent = ?) AS recorded, total FROM _run WHERE run = ?'
    const values = [keyOf(this.#run, 0), this.#run] as const
    return this.#reading(() => this.#db.prepare(count).get(...values) as { recorded: number; total: number | null })
  }

  /** The latest recorded fingerprint of an agent's source. */
  fingerprint(name: string, module: string): string | null | undefined {
    const latest = `SELECT fingerprint FROM _agents WHERE name = ? AND module = ? AND agent > ? AND agent < ?
       ORDER BY agent DESC LIMIT 1`
    const range = [keyOf(this.#run, 0), keyOf(this.#run + 1, 0)] as const
    const row = this.#reading(() => this.#db.prepare(latest).get(name, module, ...range))
    return row?.fingerprint as string | null | undefined
  }

  get isOpen(): boolean {
    return this.#db.isOpen
  }

  close(): void {
    if (this.isOpen) this.#db.close()
  }

  #row(id: string, parent: number, parentAttempt: number): Row | undefined {
    const row = this.#find.get(id, keyOf(this.#run, parent), parentAttempt)
    return row && (checkedRow(row, CHARGED_TASK, `task '${id}'`) as Row)
  }

  #known(id: string, row: Row): StoredOutcome {
    const answered = row.status !== undefined && row.status !== null
    // With `retryFailed`, a failed task gets its full number of attempts again.
    const fresh = answered && row.status !== 'cancelled'
    const before = this.#blobs.bytesRead
    this.#blobs.refill()
    return {
      record: numberOf(row.task),
      attempts: fresh ? 0 : (row.charged ?? 0),
      response: answered
        ? responseOf(id, row.agentName, row as AttemptColumns, {
            blobs: this.#blobs,
            from: this.#from,
            around: this.#around,
          })
        : undefined,
      bytes: this.#blobs.bytesRead - before,
      startedBefore: row.begun === 1 ? this.#startedBefore(answered ? row.status : undefined) : undefined,
      final: answered && this.#isFinal(row.status),
      fresh,
    }
  }

  #startedBefore(status: TaskStatus | undefined): string | undefined {
    if (status === undefined) return DRIVER_DIED
    return status === 'cancelled' && !this.#retryFailed ? WAS_CANCELLED : undefined
  }

  #isFinal(status: TaskStatus): boolean {
    return status === 'success' || (status !== 'cancelled' && !this.#retryFailed)
  }

  /** Compares what decides answers with the latest session. Throws RESUME_MISMATCH if it differs, unless that is accepted. */
  checkSettings(config: string): SettingChange[] {
    const now = answerSettings(config)
    const sql = 'SELECT config FROM _sessions WHERE epoch > ? AND epoch < ? ORDER BY epoch DESC LIMIT 1'
    const last = this.#reading(() => this.#db.prepare(sql).get(...this.#range))?.config
    if (now === undefined || !isText(last) || !this.#hasAnswers) return []
    // An earlier session may have redacted fewer secrets.
    const was = this.#reading(() =>
      answerSettings((this.#redactor ? this.#redactor.encoded(last as string) : last) as string),
    )
    const changes = was === undefined ? [] : settingChanges(was, now)
    if (changes.length > 0 && !this.#acceptChanges)
      throw new ManyworldsError(
        'RESUME_MISMATCH',
        `run '${this.#runId}' (${this.#path}) has answers with other settings: ${changes.map(changeText).join('; ')}. Change them back, ${GO_ON}`,
      )
    return changes
  }

  /** Cancelled tasks run again: a corrected model name, of a model that was not available, mixes nothing. */
  get #hasAnswers(): boolean {
    const sql = 'SELECT success + failed + timeout + crashed AS answers FROM _run WHERE run = ?'
    return Number(this.#reading(() => this.#db.prepare(sql).get(this.#run))?.answers ?? 0) > 0
  }

  get #range(): [number, number] {
    return [keyOf(this.#run, 0), keyOf(this.#run + 1, 0)]
  }

  /** Throws if the task differs. True: only the params of its agent do, and that is accepted. */
  #compare(id: string, row: TaskColumns, content: TaskContent, place: number | undefined): boolean {
    if (place !== undefined && row.place !== place)
      throw this.#refusal(
        `task '${id}' is number ${place + 1} of the sequence, but was number ${(row.place ?? 0) + 1} when the run started`,
      )
    if (this.#same(row, content)) return false
    if (this.#hasOtherParams(row, content)) {
      const changes = (key: string) => changesIn(key, this.#read(row.params), decode(content.params))
      if (this.#acceptChanges && !this.#toldOf.has(content.agentName)) {
        this.#toldOf.add(content.agentName)
        this.#notice(goesOnText(changes(`${content.agentName}.params`)))
      }
      if (this.#acceptChanges || this.#wasAccepted(content)) return true
      const [change] = changes('params')
      throw new ManyworldsError(
        'RESUME_MISMATCH',
        `task '${id}' has changed since the run started. Its agent's params differ: ${changeText(change!)}. Give the same params to run '${this.#runId}' (${this.#path}), ${GO_ON}`,
      )
    }
    throw this.#refusal(`task '${id}' has changed since the run started. ${this.#difference(row, content)}`)
  }

  #same(row: TaskColumns, content: TaskContent): boolean {
    if (Buffer.compare(row.hash, contentHash(content)) === 0) return true
    // Compare the values: v8 can serialize equal values to different bytes, and an earlier session may have redacted fewer secrets.
    const isExact = ![content.input, content.info, content.params].some((part) => part instanceof Uint8Array)
    if (isExact && this.#redactor === undefined) return false
    const { agentName, input, info, params, dependsOn } = content
    this.#blobs.refill()
    const stored = [row.agentName, row.dependsOn, ...[row.input, row.info, row.params].map((part) => this.#read(part))]
    return isSameValue(stored, [agentName, dependsOn, ...[input, info, params].map(decode)])
  }

  #hasOtherParams(row: TaskColumns, { agentName, dependsOn, input, info, params }: TaskContent): boolean {
    this.#blobs.refill()
    const stored = [row.agentName, row.dependsOn, this.#read(row.input), this.#read(row.info)]
    return (
      isSameValue(stored, [agentName, dependsOn, decode(input), decode(info)]) &&
      !isSameValue(this.#read(row.params), decode(params))
    )
  }

  /** An earlier session with `acceptChanges` ran the agent with these params, so they need not be accepted again. */
  #wasAccepted({ agentName, params }: TaskContent): boolean {
    let accepted = this.#acceptedParams.get(agentName)
    if (accepted === undefined) {
      const rows = this.#db.prepare(ACCEPTED_PARAMS).all(this.#run, agentName, ...this.#range)
      accepted = rows.map((row) => this.#read(row.params))
      this.#acceptedParams.set(agentName, accepted)
    }
    const now = decode(params)
    return accepted.some((value) => isSameValue(value, now))
  }

  /** Reads a stored value and redacts the current secrets. */
  #read(stored: unknown): unknown {
    const value = this.#blobs.read(stored)
    return this.#redactor ? this.#redactor.value(value) : value
  }

  #difference(row: TaskColumns, content: TaskContent): string {
    if (row.agentName !== content.agentName) return `Its agent was '${row.agentName}' and is now '${content.agentName}'`
    const parts: [what: string, was: unknown, is: Encoded][] = [
      ['Its input differs', row.input, content.input],
      ['Its groundTruth, metadata, tools or groupId differ', row.info, content.info],
      ['Its dependsOn differs', row.dependsOn, content.dependsOn],
    ]
    for (const [what, stored, is] of parts) {
      const was = this.#read(stored)
      const now = decode(is)
      if (isSameValue(was, now)) continue
      const [before, after] = differing(was, now)
      return `${what}: it was ${before} and is now ${after}`
    }
    return 'Its content differs'
  }

  #refusal(what: string): ManyworldsError {
    return new ManyworldsError(
      'RESUME_MISMATCH',
      `${what}. Give the same tasks to run '${this.#runId}' (${this.#path}), or start a new run with another runId`,
    )
  }

  #reading<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw storeError(error, this.#path, 'read')
    }
  }
}

const ACCEPTED_PARAMS = `SELECT g.params FROM _agents g JOIN _sessions s ON s.epoch = ? * ${RUN_SPAN} + g.epoch
  WHERE g.name = ? AND g.agent > ? AND g.agent < ? AND s.config ->> '$.acceptChanges' = 1`

const GO_ON =
  'start a new run with another runId, or go on with both: `acceptChanges: true` (--accept-changes); its figures are then split'
