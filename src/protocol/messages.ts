import type { AgentRef } from '../agent.ts'
import type { TaskErrorCode } from '../errors.ts'
import type { Episode } from '../trajectory/episode.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'

/**
 * Every message between driver and worker. A batch is a list of messages; `codec.ts` turns it into bytes, `channel.ts` decides
 * what is sent first, and `check-messages.ts` checks what arrives. A message is an object with a `type`. Its data per task are
 * tuples, because at 100,000 tasks a second object keys cost more than everything else.
 */
export const PROTOCOL_VERSION = 1

/** A value that is ready to be sent: see `pack.ts`. */
export type Packed = unknown

// ---- driver to worker

export type DriverMessage =
  /** The answer to `ready`: from now on both ends use this codec. Sent again when the settings change. */
  | { type: 'hello'; protocol: number; codec: string; settings: WorkerSettings }
  | { type: 'agent'; key: number; ref: AgentRef; params: Packed; entry: string | undefined; bundle?: BundlePlace }
  | { type: 'profile'; key: number; profile: Profile }
  | { type: 'forget'; profiles: number[] }
  | { type: 'run'; tasks: TaskItem[]; careful: boolean }
  /** Other workers are idle: return the tasks that are not started. */
  | { type: 'recall' }
  /** The answer to `may-start`. */
  | { type: 'go'; lease: number }
  | { type: 'cancel'; lease: number; reason: 'cancelled' | 'deadline' }
  /** Does the event loop still read and answer? */
  | { type: 'ping' }
  /** This many bytes of steps are on disk: see STEP_WINDOW. */
  | { type: 'stored'; bytes: number }
  /** The answer of a service. A stream is answered part by part; the `last` message then has no value. */
  | { type: 'answer'; request: number; ok: boolean; last: boolean; value: Packed }
  /** Nothing is stored for this request: the task does the work itself, and sends the result with `hand-in`. */
  | { type: 'yours'; request: number }
  /** Stops the clock of the task that made this request, or starts it again: the service began or stopped waiting. */
  | { type: 'clock'; request: number; stands: boolean }

/** Where workers on other machines find an agent's code: in a bundle that their host has. */
export interface BundlePlace {
  readonly sha256: string
  /** The agent's module and the script that was started, as the bundle names them. */
  readonly module: string
  readonly entry: string | undefined
}

/**
 * The most bytes of steps that a worker may have sent and that are not stored yet. It limits the driver's memory if the disk is
 * slow. A commit takes milliseconds, so usually the limit does not slow a worker down.
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

/** Settings that many tasks share, sent once per worker. */
export interface Profile {
  readonly agent: number
  readonly runId: string
  readonly seed: number
  readonly timeoutMs: number | undefined
  /** Its tasks must never start twice: the worker asks the driver before it starts one. */
  readonly announce: boolean
  /** The run is stored: the worker reports tasks that have been running for a while. */
  readonly recorded: boolean
}

/**
 * One attempt of a task. A task without its own id has its position as `id`: a number is cheaper than text. The last two fields
 * are left out for a first attempt without extras, which is nearly every one.
 */
export type TaskItem = [
  lease: number,
  profile: number,
  id: string | number,
  input: Packed,
  attempt?: number,
  extras?: TaskExtras,
]

/** Fields that most tasks do not have. Each is packed as one value. */
export interface TaskExtras {
  readonly info?: Packed
  readonly previous?: Packed
  readonly results?: Packed
}

// ---- worker to driver

export type WorkerMessage =
  /** The first message. `codecs`: those that the worker has. */
  | { type: 'ready'; protocol: number; codecs: readonly string[]; node: string; pid: number }
  | { type: 'loaded'; agent: number }
  | { type: 'load-failed'; agent: number; code: LoadFailure; message: string; stack: string | undefined }
  /** What tasks recorded and printed, and the outcomes of tasks that ended. The records of a task come before its outcome. */
  | { type: 'done'; records: TaskRecords[]; outcomes: Outcome[] }
  | { type: 'started'; leases: number[] }
  /** These tasks of stored runs have been running for this long. */
  | { type: 'running'; tasks: [lease: number, ms: number][] }
  /** This task must never start twice: the worker starts it when the driver answers `go`. */
  | { type: 'may-start'; lease: number }
  /** All tasks of this worker wait for I/O: it could take more. */
  | { type: 'hungry' }
  /** The answer to a recall. */
  | { type: 'returned'; unstarted: number[] }
  /** The worker takes no new tasks, and asks to be replaced once it is empty. */
  | { type: 'retire'; reason: string; unstarted: number[] }
  /** The worker is about to exit because of this task; the other tasks here are not to blame. */
  | { type: 'exiting'; lease: number; error: ErrorItem; runMs?: number }
  | { type: 'cancel-seen'; lease: number }
  /** The answer to `ping`. */
  | { type: 'pong' }
  /** So many agents are being imported or set up now. Neither has a timeout, and the event loop may be blocked meanwhile. */
  | { type: 'preparing'; agents: number }
  /** An error that belongs to no running task. Plain, since it may come before a codec is agreed. */
  | { type: 'stray'; error: ErrorItem }
  | Ask
  /** The task cancelled the request. */
  | { type: 'unask'; request: number; lease: number }
  /** The task took this many parts of a stream; as many more may be sent. */
  | { type: 'more'; request: number; lease: number; parts: number }
  /** The answer to `yours`: the result of the work that the task did itself, to be stored. */
  | { type: 'hand-in'; request: number; lease: number; value: Packed }

export type TaskRecords = [lease: number, steps: PackedStep[], logs: string[]]
/**
 * How a task ended. Times are whole microseconds: a small integer takes one or two bytes, a fraction eight. `waitedUs`: how long
 * its clock was stopped. The last two fields are left out if they are empty.
 */
export type Outcome = [
  lease: number,
  status: OutcomeStatus,
  value: Packed,
  runUs: number,
  waitedUs?: number,
  experience?: Packed,
]
/** What a task leaves for training besides its answer and steps: packed as one value in its outcome. */
export interface Experience {
  /** How its episode ended, for agents in environments. */
  readonly episode?: Episode
  /** The digest of its trajectory: see `trajectory/digest.ts`. */
  readonly digest?: string
}
export const OUTCOME = { success: 0, failed: 1, timeout: 2, cancelled: 3 } as const
export type OutcomeStatus = (typeof OUTCOME)[keyof typeof OUTCOME]
/** The names of the statuses, by their number. */
export const STATUS = Object.keys(OUTCOME) as (keyof typeof OUTCOME)[]

export interface ErrorItem {
  readonly code: TaskErrorCode
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  /** True for a RetryableError, false for a FatalError. */
  readonly retryable?: boolean
  /** At most RETRY_AFTER_MAX_MS. */
  readonly retryAfterMs?: number
  /** The thrown value, if it can be sent. */
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
  /** `give`: other tasks may use its slot while it waits. `stands`: its timeout is paused while it waits. */
  slot: 'keep' | 'give'
  clock: 'runs' | 'stands'
  body: Packed
}

/**
 * How many requests a task may have open on each channel of its worker. Further ones wait in the worker. Calls for sub-tasks do
 * not count.
 */
export const MAX_OPEN_REQUESTS = 64
/** How many parts of a stream may be sent before the task acknowledges some. */
export const STREAM_PARTS = 16

/** Services whose names begin with this are called only by this package. */
export const OWN_SERVICES = 'manyworlds.'
/** The service of `ctx.limit`. A request has the name of the limit, and how many milliseconds the task waits at most. */
export const LIMITS = 'manyworlds.limits'
export type LimitAsked = readonly [name: string, waitMs: number]
/** The service that runs sub-tasks, the one that stores results of `ctx.once`, and the one that has blobs. */
export const SUB_TASKS = 'manyworlds.subtasks'
export const ONCE = 'manyworlds.once'
export const BLOBS = 'manyworlds.blobs'

/** A request to `BLOBS`. */
export type BlobAsked =
  /** Which blob has this name or hash? From now on it is held for the task. The answer is a `BlobOpened`. */
  | readonly ['open', name: string]
  /** Answered with true when the engine has brought it to the workers; with false if the engine cannot. */
  | readonly ['wait', sha256: string]
  /** Its bytes from this offset on, in parts. */
  | readonly ['read', sha256: string, from: number]

export interface BlobOpened {
  readonly sha256: string
  readonly bytes: number
}

/** A request to `SUB_TASKS`: to run these tasks for a task that waits for them. */
export interface SubTasksAsked {
  /** How many such requests this attempt made before. It makes the ids of sub-tasks the same in a rerun. */
  readonly ordinal: number
  readonly tasks: readonly { id: string | undefined; ref: AgentRef; params: Packed; input: Packed; options: Packed }[]
}
