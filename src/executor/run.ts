import type { BlobSource } from '../blobs.ts'
import { Deque } from '../deque.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { TrajectorySource } from '../response.ts'
import type { RunConfig } from '../run-config.ts'
import type { TaskResponse } from '../task.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { AbortReason } from './abort-reason.ts'
import type { AgentState } from './agents.ts'
import type { Budget } from './budget.ts'
import type { RunRecorder } from './recorder.ts'
import type { RunBlobs } from './run-blobs.ts'
import type { Service } from './service.ts'
import type { TaskSource } from './source.ts'
import type { EntryOptions, TaskEntry } from './task-entry.ts'

export interface RunOptions {
  readonly runId: string
  readonly seed: number
  readonly timeoutMs: number | undefined
  /** Undefined: not set, see `retry-decision.ts`. */
  readonly maxAttempts: number | undefined
  /** The user's function that decides whether a failed attempt is retried. */
  readonly retryIf?: RunConfig['retryIf']
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly deadlineMs: number | undefined
  readonly signal: AbortSignal | undefined
  readonly showLogs: boolean
  readonly speculate: boolean
  /** Keep steps in memory for the responses; else they are read from the store. */
  readonly keepSteps: boolean
  /** The run is stored: workers report which tasks have been running for a while. */
  readonly recorded: boolean
  /** The services that its tasks may ask, by name. */
  readonly services: ReadonlyMap<string, Service> | undefined
  /** Limits on its spending, if any. */
  readonly budget: Budget | undefined
  /** Blobs that its tasks can read, by name. */
  readonly blobs?: ReadonlyMap<string, BlobSource> | undefined
  /** Removes the run's secrets from steps, printed lines and errors; undefined: it has none. */
  readonly redactor?: Redactor | undefined
}

/** Why a run starts nothing new and answers unfinished tasks as `cancelled`. */
export type StopReason = 'cancelled' | 'deadline' | 'budget'

/** Where a run's responses go. */
export interface RunSink {
  /** `bytes`: the rough size of the answer. No entry: the response comes from an earlier session. */
  response(index: number, response: TaskResponse, bytes: number, entry: TaskEntry | undefined): void
  /** True: the consumer is slow; read no more tasks for now. */
  full(): boolean
  /** The run is over: every task that was read has been answered. An error says why it failed. May be called during `open`. */
  end(error: Error | undefined, run: Run): void
}

/** One call of `Runners`: its queue, source and responses. Runs of one executor share its workers fairly. */
export class Run {
  readonly options: RunOptions
  readonly source: TaskSource
  readonly sink: RunSink
  readonly recorder: RunRecorder | undefined
  /** Gives what trajectories need in addition to the responses. */
  readonly around: TrajectorySource
  /** The agents of its tasks, sub-tasks included. */
  readonly agents = new Set<AgentState>()
  /** Agents of sub-tasks whose code could not be loaded, with the error: loading is not retried for each task. */
  readonly unloadable = new Map<AgentState, Error>()
  /** Numbers of its profiles, by content. */
  readonly profiles = new Map<string, number>()
  /** The options of most entries, as one shared object. */
  readonly usualOptions: EntryOptions
  /** Goes first: sub-tasks and tasks that were started before. */
  readonly urgent = new Deque<TaskEntry>()
  readonly ready = new Deque<TaskEntry>()
  /** Tasks that were read and wait for labels or for their agent's code. Bounded: see `intake.ts`. */
  aside = 0
  /** Entries that are not settled, sub-tasks included. */
  live = 0
  sourceState: 'open' | 'waiting' | 'ended' = 'open'
  /** Why nothing new is started. */
  stopping: StopReason | 'failed' | undefined
  /** The reason of the caller's signal, if it was aborted. */
  aborted: AbortReason | undefined
  error: Error | undefined
  /** Why a task of it was cancelled, if something that it needs was not available: a later session runs it. */
  unavailable: ErrorItem | undefined
  over = false
  /** Requests that cost money and were repeated because a process died before their answers were stored. */
  repeatedCalls = 0
  /** What it has spent in this session: all attempts of its tasks and sub-tasks, and its graders. */
  readonly usage: Usage = {}
  /** Lines that its tasks printed and that were not shown. */
  hiddenLines = 0
  /** Its blobs, until it is over. */
  blobs: RunBlobs | undefined
  /** Told that the run is to stop within this time, also after its last task has ended: its grades may be pending. */
  onStop = (_graceMs: number) => {}
  /** Listens to the caller's signal. */
  onAbort = () => {}
  deadlineTimer: NodeJS.Timeout | undefined
  drainTimer: NodeJS.Timeout | undefined
  readonly retrying = new Set<TaskEntry>()
  /** The last profile and its key: most tasks of a run have the same. */
  lastProfile: { key: number; agent: number; timeoutMs: number | undefined; announce: boolean } | undefined

  constructor(options: RunOptions, source: TaskSource, sink: RunSink, recorder: RunRecorder | undefined) {
    this.options = options
    this.usualOptions = { maxAttempts: options.maxAttempts, neverRerun: false, requires: undefined }
    this.source = source
    this.sink = sink
    this.recorder = recorder
    const { runId: id, seed } = options
    this.around = recorder?.around ?? { around: async () => ({ run: { id, seed } }) }
  }

  get finished(): boolean {
    return this.sourceState === 'ended' && this.live === 0
  }
}
