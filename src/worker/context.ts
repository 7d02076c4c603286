import { format } from 'node:util'
import type { Context, TaskInfo } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { CompleteOptions, GenerateOptions } from '../models/generate.ts'
import { complete } from '../models/worker/complete.ts'
import { generate } from '../models/worker/generate.ts'
import { languageModel } from '../models/worker/language-model.ts'
import { MODEL_CALLS, type ModelCalls, type ModelSource } from '../models/worker/transport.ts'
import { OUTCOME, type OutcomeStatus, type Profile, type TaskItem } from '../protocol/messages.ts'
import { NotPackable, unpack } from '../protocol/pack.ts'
import { checkStreamName, randomFrom } from '../random.ts'
import { automaticId } from '../task.ts'
import { beginningOf } from '../text/beginning.ts'
import { BRANCHES, Branches, type BranchPlace, type BranchSource } from '../trajectory/branches.ts'
import { TrajectoryDigest } from '../trajectory/digest.ts'
import { EPISODE, type Episode, type EpisodeSink } from '../trajectory/episode.ts'
import { ListMemory } from '../trajectory/list-memory.ts'
import { type PackedStep, packStep } from '../trajectory/packed-step.ts'
import { noteOf, RECORD, RECORDED, STEPS, type StepSink } from '../trajectory/record.ts'
import { MOST_STEPS, type Step, type StepContent, type StepRecord } from '../trajectory/step.ts'
import type { Asker } from './asker.ts'
import { checkedAsking, limitAskingOf, onceAskingOf, onceResultOf } from './asking.ts'
import type { Asks } from './asks.ts'
import { SIDE, type SideAnswer } from './side-ask.ts'
import type { TaskRunner } from './task-runner.ts'

/** Lines kept per task; a task that prints without end must not fill the driver's memory. */
const MAX_LOG_LINES = 1000
const MAX_LOG_CHARS = 256 * 1024
const TOO_MANY_STEPS = `ctx.step(): an attempt may record ${MOST_STEPS} steps at most; record several of them in one step, under \`data\``
const NO_RESULTS: ReadonlyMap<string, unknown> = new Map()
/** Fixed parts of the seed: runs differ by their own seed, and a training gives each of its collections another one (`train/pipeline/seeds.ts`). */
const PURPOSE = 'run'
const VISIT = 0

/** The abort reason of a task whose code has ended. */
const TASK_ENDED = new DOMException('the task has ended', 'AbortError')

/** The abort reasons of tasks. */
const reasons = new WeakSet<object>([TASK_ENDED])

/** Errors of code that a task left behind are ignored once its signal is aborted. */
export const isLeftover = (error: unknown): boolean =>
  isReason(error) || (error instanceof Error && isReason(error.cause))

const isReason = (value: unknown) => typeof value === 'object' && value !== null && reasons.has(value)

/**
 * A running task: the agent's `ctx` and the worker's own state. One object for both, with rare parts made on first use, because
 * it is allocated for every task.
 */
export class TaskContext implements Context, Asker, StepSink, EpisodeSink, BranchSource, ModelSource {
  readonly lease: number
  readonly attempt: number
  readonly params: unknown
  readonly state: unknown
  readonly startedAt: number
  /** Set once the outcome was sent; what the agent does after that is ignored. */
  settled = false
  /** It counts as running. */
  holdsSlot = true
  /** Its code has ended. */
  ended = false
  /** It was abandoned, and its code still runs. */
  zombie = false
  /** Its requests, if it has made any. */
  asks: Asks | undefined
  /** The blobs it has asked for, by the name it used. */
  blobs: Map<string, Promise<Uint8Array>> | undefined
  /** Its model calls that are under way, if it has made any. `signal`: that of the call's options. */
  modelCalls: { readonly model: string; readonly signal: AbortSignal | undefined }[] | undefined
  timer: NodeJS.Timeout | undefined
  deadline = Number.POSITIVE_INFINITY
  /** The driver was told that it has been running for a while. */
  announced = false
  /** How its episode ended, if it has said so. */
  episode: Episode | undefined
  subTaskCalls = 0
  sideAsks = 0
  readonly #runner: TaskRunner
  readonly #item: TaskItem
  readonly #profile: Profile
  #abort: AbortController | undefined
  #random: (() => number) | undefined
  #streams: Map<string, () => number> | undefined
  #steps = 0
  #branches: Branches | undefined
  #digest: TrajectoryDigest | undefined
  #listMemory: ListMemory | undefined
  #logLines = 0
  #logChars = 0

  constructor(runner: TaskRunner, item: TaskItem, profile: Profile, params: unknown, state: unknown, now: number) {
    this.#runner = runner
    this.#item = item
    this.#profile = profile
    this.lease = item[0]
    this.attempt = item[4] ?? 1
    this.params = params
    this.state = state
    this.startedAt = now
  }

  get #agentName(): string {
    return this.#runner.agents.get(this.#profile.agent).definition?.name ?? ''
  }

  get running(): this {
    return this
  }

  get #id(): string {
    const id = this.#item[2]
    return typeof id === 'number' ? automaticId(id) : id
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    return this.#abort.signal
  }

  abort(reason: unknown): void {
    if (this.#abort === undefined) this.#abort = new AbortController()
    // An error outside of the task's own calls may be this abort reason.
    if (typeof reason === 'object' && reason !== null) reasons.add(reason)
    this.#abort.abort(reason)
  }

  /** Its code has ended: aborts its signal, so that what it left behind ends too. A grader may run now. */
  end(): void {
    this.ended = true
    if (this.#abort?.signal.aborted === false) this.#abort.abort(TASK_ENDED)
  }

  /** The error of requests made after its end. */
  get whyOver(): unknown {
    const reason: unknown = this.#abort?.signal.reason
    if (reason !== undefined && reason !== TASK_ENDED) return reason
    return new ManyworldsError(
      'REQUEST_INVALID',
      'the task asked the driver for something after it had ended; await ctx.ask(), ctx.once() and ctx.runTask() before it returns',
    )
  }

  /** The number of its profile, which no other run has. */
  get profile(): number {
    return this.#item[1]
  }

  get idempotencyKey(): string {
    return `${this.#profile.runId}/${this.#id}`
  }

  get task(): TaskInfo {
    const info = unpack(this.#item[5]?.info) as Omit<TaskInfo, 'id'> | undefined
    return { id: this.#id, ...info }
  }

  get previous(): unknown {
    return unpack(this.#item[5]?.previous)
  }

  get results(): ReadonlyMap<string, unknown> {
    return (unpack(this.#item[5]?.results) as ReadonlyMap<string, unknown> | undefined) ?? NO_RESULTS
  }

  // Getters that return closures, so that agents can destructure them (`const { step, log } = ctx`).
  get log() {
    return (...values: unknown[]) => this.print(format(...values))
  }

  get random() {
    this.#random ??= this.randomStream('')
    return this.#random
  }

  get randomStream() {
    return (name: string): (() => number) => {
      checkStreamName(name)
      this.#streams ??= new Map()
      let stream = this.#streams.get(name)
      if (stream === undefined) this.#streams.set(name, (stream = this.#newStream(name)))
      return stream
    }
  }

  #newStream(stream: string): () => number {
    const { id, rollout } = this.task
    const task = rollout?.of ?? id
    return randomFrom({
      ...{ seed: this.#profile.seed, purpose: PURPOSE, stream },
      ...{ task, visit: VISIT, rollout: rollout?.number ?? 1 },
    })
  }

  get step() {
    return (record: StepRecord) => this[RECORD](noteOf(record))
  }

  [RECORD](content: StepContent): Promise<void> {
    if (this.settled) return RECORDED
    if (this.#steps === MOST_STEPS) throw new RangeError(TOO_MANY_STEPS)
    const atMs = Math.round((performance.now() - this.startedAt) * 1000) / 1000
    const { branch = 0 } = content
    const opens = this.#branches?.undeclared(branch)
    const index = this.#steps
    const step: Step = opens ? { index, atMs, ...content, opens } : { index, atMs, ...content }
    const { outbox } = this.#runner
    outbox.step(this.lease, packed(step, this.#lists))
    this.#steps++
    this.#branches?.recorded(index, branch, opens)
    this.#digest ??= new TrajectoryDigest()
    this.#digest.add(step)
    return outbox.room ?? RECORDED
  }

  get [STEPS](): number {
    return this.#steps
  }

  get [BRANCHES](): BranchPlace {
    this.#branches ??= new Branches(() => this.#agentName, this.#steps)
    return this.#branches
  }

  [EPISODE](episode: Episode): void {
    this.episode = episode
  }

  /** The digest of its trajectory, once it has ended; undefined if there is nothing to compare. */
  digest(status: OutcomeStatus): string | undefined {
    // The steps of a task that was ended from outside depend on the time, so it has no digest.
    if (status !== OUTCOME.success && status !== OUTCOME.failed) return undefined
    if (this.#digest === undefined && this.episode === undefined) return undefined
    this.#digest ??= new TrajectoryDigest()
    return this.#digest.end(status === OUTCOME.success ? 'success' : 'failed', this.episode)
  }

  get timeoutMs(): number {
    return this.#profile.timeoutMs!
  }

  /** The driver does not know yet that it runs. */
  get isUnknown(): boolean {
    return !this.announced && this.#steps === 0
  }

  /** Lists of earlier steps; made for tasks that record lists. */
  readonly #lists = () => {
    this.#listMemory ??= new ListMemory()
    return this.#listMemory
  };

  [SIDE](service: string, question: unknown): SideAnswer {
    const asking = checkedAsking('ask', service, question, { clock: 'runs' }, 'one')
    if (this.settled) throw this.whyOver
    this.sideAsks++
    return this.#runner.side.ask(this.lease, asking)
  }

  get runTask() {
    return this.#runner.subTasks.runTaskOf(this) as Context['runTask']
  }

  get ask() {
    return (async (service, question, options) =>
      this.#runner.requests.ask(this, checkedAsking('ask', service, question, options, 'one'))) as Context['ask']
  }

  get askStream() {
    return ((service, question, options) =>
      this.#runner.requests.stream(
        this,
        checkedAsking('askStream', service, question, options, 'parts'),
      )) as Context['askStream']
  }

  get limit() {
    return (async (name, options) => {
      await this.#runner.requests.ask(this, limitAskingOf(name, options))
    }) as Context['limit']
  }

  get blob() {
    return (name: string) => this.#runner.blobs.get(this, name)
  }

  get [MODEL_CALLS](): ModelCalls {
    return this.#runner.models.of(this)
  }

  get model() {
    return (name: string) => languageModel(this, name)
  }

  get generate() {
    return <Output>(options: GenerateOptions<Output>) => generate(this, options)
  }

  get complete() {
    return (options: CompleteOptions) => complete(this, options)
  }

  get once() {
    return (async (name, question, make) =>
      this.#runner.requests.once(this, onceAskingOf(name, question, make), async () =>
        onceResultOf(name, await make()),
      )) as Context['once']
  }

  /** Keeps text that the task printed, one entry per line. */
  print(text: string): void {
    if (this.settled || this.#logLines > MAX_LOG_LINES) return
    for (const line of text.split('\n')) {
      this.#logChars += line.length
      if (++this.#logLines > MAX_LOG_LINES || this.#logChars > MAX_LOG_CHARS) {
        const room = MAX_LOG_CHARS - this.#logChars + line.length
        if (this.#logLines <= MAX_LOG_LINES && room > 0) this.#runner.outbox.line(this.lease, beginningOf(line, room))
        this.#logLines = MAX_LOG_LINES + 1
        this.#runner.outbox.line(
          this.lease,
          `… (more than ${MAX_LOG_LINES} lines or ${MAX_LOG_CHARS} characters; the rest is not kept)`,
        )
        return
      }
      this.#runner.outbox.line(this.lease, line)
    }
  }
}

function packed(step: Step, lists: () => ListMemory): PackedStep {
  try {
    return packStep(step, lists)
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new TypeError(`ctx.step(): the step cannot be recorded: ${error.message}; record plain data`)
  }
}
