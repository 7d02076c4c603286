import type { BlobSource } from '../blobs.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { TrajectorySource } from '../response.ts'
import type { RunConfig } from '../run-config.ts'
import type { TaskResponse } from '../task.ts'
import type { AbortReason } from './abort-reason.ts'
import type { AgentState } from './agents.ts'
import type { Budget } from './budget.ts'
import { Deque } from './deque.ts'
import type { Entry, EntryOptions } from './entry.ts'
import type { RunRecorder } from './recorder.ts'
import type { RunBlobs } from './run-blobs.ts'
import type { Service } from './service.ts'
import type { TaskSource } from './source.ts'

export interface RunOptions {
  readonly runId: string
  readonly seed: number
  readonly timeoutMs: number | undefined
  /** Undefined: nobody said, see `retry-decision.ts`. */
  readonly maxAttempts: number | undefined
  /** The user's: whether a failed attempt is followed by another. */
  readonly retryIf?: RunConfig['retryIf']
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly deadlineMs: number | undefined
  readonly signal: AbortSignal | undefined
  readonly showLogs: boolean
  readonly speculate: boolean
  /** Responses carry their steps; else they are read from the run file. */
  readonly keepSteps: boolean
  /** It has a run file: workers say which tasks have been running for a while. */
  readonly recorded: boolean
  /** What its tasks may ask the driver for, by name. */
  readonly services: ReadonlyMap<string, Service> | undefined
  /** What it may spend, if there is a limit. */
  readonly budget: Budget | undefined
  /** The bytes that its tasks can have, by name. */
  readonly blobs?: ReadonlyMap<string, BlobSource> | undefined
  /** Takes its secrets out of what tasks record, print and fail with; undefined: it has none. */
  readonly redactor?: Redactor | undefined
}

/** Why a run starts nothing new, and what is not done is answered `cancelled`. */
export type StopReason = 'cancelled' | 'deadline' | 'budget'

/** Where a run's responses go. */
export interface RunSink {
  /** `bytes`: the rough size of the answer. Without an entry: it comes from an earlier session. */
  response(index: number, response: TaskResponse, bytes: number, entry: Entry | undefined): void
  /** True: responses are not being fetched; read no more tasks for now. */
  full(): boolean
  /** The run is over: every task that was read has been answered. With an error: it could not go on. It may end while it is opened. */
  end(error: Error | undefined, run: Run): void
}

/** One call of the user's: its queue, its source, its responses. Runs of one executor share its workers fairly. */
export class Run {
  readonly options: RunOptions
  readonly source: TaskSource
  readonly sink: RunSink
  readonly recorder: RunRecorder | undefined
  /** What is known of its tasks besides their responses. */
  readonly around: TrajectorySource
  /** The agents of its tasks, sub-tasks included. */
  readonly agents = new Set<AgentState>()
  /** Agents of sub-tasks whose code could not be loaded, and why: it is not tried again for each of their tasks. */
  readonly unloadable = new Map<AgentState, Error>()
  /** Numbers of its profiles, by content. */
  readonly profiles = new Map<string, number>()
  /** The options of most entries: one object for all of them. */
  readonly usualOptions: EntryOptions
  /** Goes first: sub-tasks, and tasks that were already under way once. */
  readonly urgent = new Deque<Entry>()
  readonly ready = new Deque<Entry>()
  /** Entries that are not settled, sub-tasks included. */
  live = 0
  sourceState: 'open' | 'waiting' | 'ended' = 'open'
  /** Why nothing new is started. */
  stopping: StopReason | 'failed' | undefined
  /** Why the caller's signal was aborted, if it was. */
  aborted: AbortReason | undefined
  error: Error | undefined
  over = false
  /** Calls of services that cost, made again because a process died before their answers were stored. */
  repeatedCalls = 0
  /** Its blobs, while it is not over. */
  blobs: RunBlobs | undefined
  /** Listens to the caller's signal. */
  onAbort = () => {}
  deadlineTimer: NodeJS.Timeout | undefined
  drainTimer: NodeJS.Timeout | undefined
  readonly retrying = new Set<Entry>()
  /** The last profile that was made, and for what: most tasks of a run have the same. */
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
