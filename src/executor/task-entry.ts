import type { ErrorItem, Experience } from '../protocol/messages.ts'
import type { WorkerName } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { AgentState } from './agents.ts'
import type { Answers } from './answers.ts'
import type { Children } from './children.ts'
import type { Clock } from './clock.ts'
import type { OpenRequest } from './open-request.ts'
import type { Run, StopReason } from './run.ts'
import type { Presence } from './suspects.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** A task on its way through the executor. */
export class TaskEntry {
  readonly run: Run
  readonly index: number
  readonly id: string
  readonly agent: AgentState
  readonly profile: number
  readonly options: EntryOptions
  input: unknown
  readonly size: number
  readonly submittedAt: number
  /** Charged attempts: it threw, timed out, or crashed workers, at last one in which it was alone. */
  attempts = 0
  /** How often it was given out again without being charged; and how often a worker returned it. */
  freeReruns = 0
  returns = 0
  /** Unexplained crashes of workers in which it may have run: see `suspects.ts`. */
  crashes: Presence[] | undefined
  /** Machines that were lost while it may have run there; and those where it ran alone. */
  placesLost = 0
  placesLostAlone = 0
  /** The number of its task in the store; 0: it has none. */
  record = 0
  /** The packed answer, once it has one. */
  answer: unknown
  /** Grade, episode and digest of the attempt that counts. */
  experience: Experience | undefined
  /** The live lease; an outcome under any other is late and changes nothing. */
  lease: Lease | undefined
  /** A second lease, if it is a straggler: see `stragglers.ts`. */
  twin: Lease | undefined
  worker: WorkerName | undefined
  /** How long the clock of its last attempt was stopped. */
  waitedMs = 0
  /** The records of the attempt that counts. */
  records: AttemptRecords | undefined
  settled = false
  /** Why it is being cancelled, once it is. */
  cancelling: StopReason | undefined
  /** It crashed a worker in which it was alone: it is retried alone. */
  alone = false
  retryTimer: NodeJS.Timeout | undefined
  /** The parent, if this is a sub-task. */
  readonly parent: TaskEntry | undefined
  readonly depth: number
  /** Its own sub-tasks, if it has asked for any. */
  children: Children | undefined
  /** It has sub-tasks or durable answers, so it must not run twice at the same time. */
  asksOnce = false
  /** The durable answers of its last attempt that asked for any. */
  answersKept: Answers | undefined
  /** What model calls of this attempt have spent. A rerun of the attempt gets their answers again, and pays only for others. */
  paid: { readonly attempt: number; readonly usage: Usage } | undefined

  constructor(
    run: Run,
    index: number,
    id: string,
    agent: AgentState,
    profile: number,
    packed: PackedInput,
    options: EntryOptions,
    parent?: TaskEntry,
  ) {
    this.run = run
    this.index = index
    this.id = id
    this.agent = agent
    this.profile = profile
    this.input = packed.input
    this.size = packed.size
    this.options = options
    this.submittedAt = performance.now()
    this.parent = parent
    this.depth = parent === undefined ? 0 : parent.depth + 1
  }
}

interface PackedInput {
  readonly input: unknown
  readonly size: number
}

export interface EntryOptions {
  readonly maxAttempts: number | undefined
  readonly neverRerun: boolean
  readonly requires: readonly string[] | undefined
  /** Packed: see TaskExtras. The store may have more, which is not kept here. */
  readonly info?: unknown
  readonly previous?: unknown
  readonly results?: unknown
  readonly groupId?: string | undefined
  /** Which rollout of its task it is. */
  readonly rollout?: number | undefined
}

/** The records of an attempt so far. */
export interface AttemptRecords {
  /** Packed; undefined if they are only needed in the store. */
  steps: PackedStep[] | undefined
  /** How many steps there were. */
  count: number
  usage: Usage | undefined
  /** The part of `usage` that model calls reported. */
  modelUsage: Usage
  logs: string[] | undefined
  /** The steps that contained secrets, if any. */
  redacted?: Set<number>
  /** The number of its start in the store; 0: it has none. */
  start: number
}

/** The requests of a task under one lease. */
export interface LeaseAsks {
  /** Requests without a last answer. */
  readonly open: Map<number, OpenRequest>
  /** How often each durable request was made, by hash. */
  readonly asked: Map<string, number>
  /** How long it waited. */
  readonly clock: Clock
  /** Requests that wait for their turn at a service. */
  queued: number
}

/** One attempt of a task at one worker. */
export interface Lease {
  readonly id: number
  readonly entry: TaskEntry
  readonly worker: WorkerHandle
  /** The driver knows that it started: the worker announced it, or sent something that only a running task has. */
  started: boolean
  /** When it started, as far as the driver knows: it may have been earlier. */
  startedAt: number | undefined
  /** When it was given out, for runs with `speculate`; else 0. */
  readonly givenAt: number
  /** Which attempt of the task it is, from 1. */
  readonly attempt: number
  /** Its records, if there are any. */
  records: AttemptRecords | undefined
  /** Open requests for which it released its slot: it should not run code meanwhile. */
  waitingCalls: number
  /** Since when it is without its slot; and for how long in total before. */
  awaySince: number
  awayMs: number
  /** The size of the group of suspects it was given with; 0: it is no suspect. */
  readonly group: number
  /** Its requests, if it has made any. */
  asks: LeaseAsks | undefined
  /** Why something that it needs is not available to any task: a failure of this attempt then counts as cancelled. */
  unavailable: ErrorItem | undefined
}
