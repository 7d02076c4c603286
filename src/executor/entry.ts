import type { Experience } from '../protocol/messages.ts'
import type { WorkerName } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { AgentState } from './agents.ts'
import type { Answers } from './answers.ts'
import type { Children } from './children.ts'
import type { Clock } from './clock.ts'
import type { OpenRequest } from './open-request.ts'
import type { Run, StopReason } from './run.ts'
import type { Crash } from './suspects.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** A task on its way through the executor. */
export class Entry {
  readonly run: Run
  readonly index: number
  readonly id: string
  readonly agent: AgentState
  readonly profile: number
  readonly options: EntryOptions
  input: unknown
  readonly size: number
  readonly submittedAt: number
  /** Attempts that count: it threw, timed out, or took down a worker in which it was alone. */
  attempts = 0
  /** Crashes that it was there for, and that nobody is charged with: see `suspects.ts`. */
  crashes: Crash[] | undefined
  /** Places that were lost while it may have run there; and of those, the ones where it ran alone. */
  placesLost = 0
  placesLostAlone = 0
  /** The number of its task in the run file; 0: it has none. */
  record = 0
  /** The packed answer, once it has one. */
  answer: unknown
  /** What else the attempt that counts came to. */
  experience: Experience | undefined
  /** The live lease; an outcome under any other is late and changes nothing. */
  lease: Lease | undefined
  /** A second lease, of a task that took too long: see `stragglers.ts`. */
  twin: Lease | undefined
  worker: WorkerName | undefined
  /** How long the clock of its last attempt stood. */
  waitedMs = 0
  /** What the attempt that counts has recorded. */
  records: AttemptRecords | undefined
  settled = false
  /** Why it is being cancelled, once it is. */
  cancelling: StopReason | undefined
  /** It took down a worker in which it was alone: it is tried again alone. */
  alone = false
  retryTimer: NodeJS.Timeout | undefined
  /** For a sub-task: whose. */
  readonly parent: Entry | undefined
  readonly depth: number
  /** Its own sub-tasks, if it has asked for any. */
  children: Children | undefined
  /** It asked for sub-tasks, or for answers that are stored: it must not run in two places at once. */
  asksOnce = false
  /** The stored answers of its last attempt that asked for such. */
  answersKept: Answers | undefined

  constructor(
    run: Run,
    index: number,
    id: string,
    agent: AgentState,
    profile: number,
    packed: PackedInput,
    options: EntryOptions,
    parent?: Entry,
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
  /** Packed: see TaskExtras. What the store has of it, which may be more, is not kept here. */
  readonly info?: unknown
  readonly previous?: unknown
  readonly results?: unknown
  readonly groupId?: string | undefined
  /** Which rollout of its task it is. */
  readonly rollout?: number | undefined
}

/** What an attempt has recorded so far. */
export interface AttemptRecords {
  /** Packed; undefined where the store has them, and nobody needs them here. */
  steps: PackedStep[] | undefined
  /** How many steps there were. */
  count: number
  usage: Usage | undefined
  logs: string[] | undefined
  /** Which of its steps had secrets, once one had. */
  redacted?: Set<number>
  /** The number of its start in the run file; 0: it has none. */
  start: number
}

/** What a task has asked for under one lease. */
export interface LeaseAsks {
  /** Without an answer. */
  readonly open: Map<number, OpenRequest>
  /** How often each question whose answer is stored was asked, by hash. */
  readonly asked: Map<string, number>
  /** How long it waited. */
  readonly clock: Clock
  /** Requests that wait for their turn at a service. */
  queued: number
}

/** One attempt of a task at one worker. */
export interface Lease {
  readonly id: number
  readonly entry: Entry
  readonly worker: WorkerHandle
  /** The worker said that it has started it (asked for only where it matters). */
  started: boolean
  /** When it was given out, for runs that may start a task twice; else 0. */
  readonly givenAt: number
  /** Which attempt of the task it is, from 1. */
  readonly attempt: number
  /** What it has recorded, once it has recorded something. */
  records: AttemptRecords | undefined
  /** Requests under which it gave its slot back: it is not supposed to run code then. */
  waitingCalls: number
  /** Since when, if it has given it back; and how long it was without in all. */
  awaySince: number
  awayMs: number
  /** How many suspects it was given with, itself included, to a worker of their own; 0: it is none. */
  readonly group: number
  /** What its task has asked the driver for, once it has. */
  asks: LeaseAsks | undefined
}
