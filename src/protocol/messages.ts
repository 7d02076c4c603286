import type { AgentRef } from '../agent.ts'
import type { TaskErrorCode } from '../errors.ts'
import type { Episode } from '../trajectory/episode.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'

/**
 * Every message that crosses a process, both ways. A batch is a list of messages; `codec.ts` turns it into bytes,
 * `channel.ts` decides what goes first, `check-messages.ts` knows what may come. What happens per task is a tuple inside a batch, because object keys cost
 * more than everything else at 100,000 tasks a second; all else is an object with a `type`.
 */
export const PROTOCOL_VERSION = 1

/** A value ready to travel: see `pack.ts`. */
export type Packed = unknown

// ---- driver to worker

export type DriverMessage =
  /** The answer to `ready`: from now on both ends use this codec. Sent again when the settings change. */
  | { type: 'hello'; protocol: number; codec: string; settings: WorkerSettings }
  | { type: 'agent'; key: number; ref: AgentRef; params: Packed; entry: string | undefined; bundle?: BundlePlace }
  | { type: 'profile'; key: number; profile: Profile }
  | { type: 'forget'; profiles: number[] }
  | { type: 'run'; tasks: TaskItem[]; careful: boolean }
  /** Others are idle: send back what is not started. */
  | { type: 'recall' }
  /** The answer to `may-start`. */
  | { type: 'go'; lease: number }
  | { type: 'cancel'; lease: number; reason: 'cancelled' | 'deadline' }
  /** So many bytes of steps are on disk: see STEP_WINDOW. */
  | { type: 'stored'; bytes: number }
  /** The answer of a service. A stream is answered part by part; the `last` message then has no value. */
  | { type: 'answer'; request: number; ok: boolean; last: boolean; value: Packed }
  /** Nothing is stored for this request: the task does the work itself, and hands the result in. */
  | { type: 'yours'; request: number }
  /** The clock of the task that asked this stands from now on, or runs again: the service waits for something, or has it. */
  | { type: 'clock'; request: number; stands: boolean }

/** For workers on other machines, where an agent's code is: in a bundle that their host has. */
export interface BundlePlace {
  readonly sha256: string
  /** The agent's module and the script that was started, as the bundle names them. */
  readonly module: string
  readonly entry: string | undefined
}

/**
 * Bytes of steps that a worker may have sent and that are not stored yet. It bounds what a driver holds of them, whatever
 * its disk does; a commit takes milliseconds, so it does not slow a worker down.
 */
export const STEP_WINDOW = 1024 * 1024

export interface WorkerSettings {
  /** Tasks that may run at once in this worker. */
  readonly concurrency: number
  /** The worker asks to be replaced after this many tasks, or above this much memory. */
  readonly recycleAfterTasks: number | undefined
  readonly recycleAboveMb: number | undefined
  /** Variables that were kept from the worker, for a hint in errors that name one. */
  readonly withheldEnv: readonly string[]
}

/** What many tasks have in common, sent once per worker. */
export interface Profile {
  readonly agent: number
  readonly runId: string
  readonly seed: number
  readonly timeoutMs: number | undefined
  /** It must never be started twice: ask before it is started, and say so when it is. */
  readonly announce: boolean
  /** The run has a file: say when a task has been running for a while. */
  readonly recorded: boolean
}

/**
 * A task without an id of its own is named by its place: a number is cheaper than a text. The last two are left out of a first attempt that has nothing special about it,
 * which is nearly every one.
 */
export type TaskItem = [
  lease: number,
  profile: number,
  id: string | number,
  input: Packed,
  attempt?: number,
  extras?: TaskExtras,
]

/** What most tasks do not have. Every field is packed as one value. */
export interface TaskExtras {
  readonly info?: Packed
  readonly previous?: Packed
  readonly results?: Packed
}

// ---- worker to driver

export type WorkerMessage =
  /** The first word. `codecs`: those it can speak. */
  | { type: 'ready'; protocol: number; codecs: readonly string[]; node: string; pid: number }
  | { type: 'loaded'; agent: number }
  | { type: 'load-failed'; agent: number; code: LoadFailure; message: string; stack: string | undefined }
  /** What tasks recorded and printed, and how some of them ended; of one task, the records come first. */
  | { type: 'done'; records: TaskRecords[]; outcomes: Outcome[] }
  | { type: 'started'; leases: number[] }
  /** These tasks of recorded runs have been running for a while: so many milliseconds. */
  | { type: 'running'; tasks: [lease: number, ms: number][] }
  /** This task must never be started twice: it is started when the answer is there. */
  | { type: 'may-start'; lease: number }
  /** Everything this worker was given is waiting for I/O: it could take more. */
  | { type: 'hungry' }
  /** The answer to a recall. */
  | { type: 'returned'; unstarted: number[] }
  /** Nothing new, please; replace me when I am empty. */
  | { type: 'retire'; reason: string; unstarted: number[] }
  /** The worker is about to exit because of this task; the other tasks here are not to blame. */
  | { type: 'exiting'; lease: number; error: ErrorItem }
  | { type: 'cancel-seen'; lease: number }
  /** An error that belongs to no running task. Plain, since it may come before a codec is agreed. */
  | { type: 'stray'; error: ErrorItem }
  | Ask
  /** The request was taken back. */
  | { type: 'unask'; request: number; lease: number }
  /** The task took so many parts of a stream; as many more may be sent. */
  | { type: 'more'; request: number; lease: number; parts: number }
  /** The answer to `yours`: the result of the work that the task did itself, to be stored. */
  | { type: 'hand-in'; request: number; lease: number; value: Packed }

export type TaskRecords = [lease: number, steps: PackedStep[], logs: string[]]
/**
 * Whole microseconds: a small integer costs a byte or two where a fraction costs eight. `waitedUs`: how long its clock stood.
 * The last two are left out where there is nothing to say.
 */
export type Outcome = [
  lease: number,
  status: OutcomeStatus,
  value: Packed,
  runUs: number,
  waitedUs?: number,
  experience?: Packed,
]
/** What else came of a task that left experience: packed as one value in its outcome. */
export interface Experience {
  /** How its episode ended, for agents in environments. */
  readonly episode?: Episode
  /** Of its trajectory: see `trajectory/digest.ts`. */
  readonly digest?: string
}
export const OUTCOME = { success: 0, failed: 1, timeout: 2, cancelled: 3 } as const
export type OutcomeStatus = (typeof OUTCOME)[keyof typeof OUTCOME]
/** The name of each. */
export const STATUS = Object.keys(OUTCOME) as (keyof typeof OUTCOME)[]

export interface ErrorItem {
  readonly code: TaskErrorCode
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  /** What the agent said by a RetryableError or a FatalError. */
  readonly retryable?: boolean
  /** At most RETRY_AFTER_MAX_MS. */
  readonly retryAfterMs?: number
  /** What was thrown, if it can travel. */
  readonly thrown?: Packed
}

export type LoadFailure =
  | 'AGENT_NOT_FOUND'
  | 'AGENT_DEFINED_TOO_LATE'
  | 'AGENT_MISMATCH'
  | 'AGENT_REDEFINED'
  | 'AGENT_LOAD_FAILED'
  | 'RUNNERS_IN_WORKER'

/** A task asks a service of the driver for something, and waits. */
export interface Ask {
  type: 'ask'
  request: number
  lease: number
  service: string
  /** `one`: one answer; `parts`: a stream; `own`: the stored result, or else `yours`, and the task does the work itself. */
  kind: 'one' | 'parts' | 'own'
  /** Whether others may use the task's slot while it waits, and whether its timeout goes on. */
  slot: 'keep' | 'give'
  clock: 'runs' | 'stands'
  body: Packed
}

/**
 * How many requests a task may have open, with each voice of its worker. Further ones wait in the worker. Calls for sub-tasks
 * do not count.
 */
export const MAX_OPEN_REQUESTS = 64
/** How many parts of a stream may be sent before the task acknowledges some. */
export const STREAM_PARTS = 16

/** Names of services that only this package asks. */
export const OWN_SERVICES = 'manyworlds.'
/** The service of `ctx.limit`. It is asked with the name of the limit, and how many milliseconds the task waits at most. */
export const LIMITS = 'manyworlds.limits'
export type LimitAsked = readonly [name: string, waitMs: number]
/** The service that runs sub-tasks, the one that stores results of `ctx.once`, and the one that has blobs. */
export const SUB_TASKS = 'manyworlds.subtasks'
export const ONCE = 'manyworlds.once'
export const BLOBS = 'manyworlds.blobs'

/** What the last of them is asked. */
export type BlobAsked =
  /** Which blob has this name, or this hash? From here on it is held for the task. The answer is a `BlobOpened`. */
  | readonly ['open', name: string]
  /** Answered when it is where workers find it: true; or false, if it does not get there. */
  | readonly ['wait', sha256: string]
  /** Its bytes from there on, in parts. */
  | readonly ['read', sha256: string, from: number]

export interface BlobOpened {
  readonly sha256: string
  readonly bytes: number
}

/** What the first of them is asked: to run these for a task, which waits. */
export interface SubTasksAsked {
  /** How many such requests this attempt made before: makes the ids of the children the same when it runs again. */
  readonly ordinal: number
  readonly tasks: readonly { id: string | undefined; ref: AgentRef; params: Packed; input: Packed; options: Packed }[]
}
