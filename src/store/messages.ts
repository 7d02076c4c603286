import type { ErrorCode } from '../errors.ts'
import type { CachedReply } from '../models/driver/cache.ts'
import type { TaskStatus } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { Keep } from './prune.ts'
import type { Encoded } from './values.ts'

/** Messages between the driver and the writer thread. Rows are tuples, because there are many of them. */
export type ToThread =
  | { type: 'open'; file: number; request: OpenRequest }
  /** `session`: begin this session in the same transaction. */
  | { type: 'write'; file: number; rows: Row[]; session: Session | undefined }
  /** Looks up cached model replies. */
  | { type: 'lookUp'; file: number; keys: Uint8Array[] }
  | { type: 'end'; file: number; ending: Ending | undefined }
  /** The process exits. The thread sets `done` when everything is closed. */
  | { type: 'close'; done: Int32Array<SharedArrayBuffer> }

export type FromThread =
  | { type: 'done'; file: number; opened?: Opened; begun?: Begun; found?: (CachedReply | undefined)[] }
  | { type: 'failed'; file: number; code: ErrorCode; message: string }
  /** A notice for the user, for example that writing is being retried. */
  | { type: 'waiting'; file: number; message: string }

/** Node posts messages of its own to worker threads: under --watch, the modules that a thread imports. */
export const isOurs = <Message extends ToThread | FromThread>(message: unknown): message is Message => {
  const { file, done } = (message ?? {}) as { file?: unknown; done?: unknown }
  return typeof file === 'number' || done instanceof Int32Array
}

export interface OpenRequest {
  readonly path: string
  /** The file may hold many runs. */
  readonly shared: boolean
  readonly header: RunHeader
  /** `start`: the run must not exist. `resume`: it must exist. `auto`: either. */
  readonly mode: 'start' | 'resume' | 'auto'
  readonly durability: 'normal' | 'full'
  /** Which older runs of the store to remove when this one begins. */
  readonly keep: Keep | undefined
}

/** The part of a run that is the same in all its sessions. */
export interface RunHeader {
  readonly runId: string
  readonly seed: number
  readonly sequenceDependent: boolean
  readonly manyworlds: string
  readonly script: string | null
}

export interface Opened {
  /** The number of the run in its store. Undefined: the run is new. */
  readonly run: number | undefined
  /** The next free numbers of rows. */
  readonly next: {
    readonly agent: number
    readonly worker: number
    readonly task: number
    readonly answer: number
    readonly grade: number
  }
}

/** A session that has begun: the number of the run in its store, and the number of the session in the run. */
export interface Begun {
  readonly run: number
  /** Tells the run from a later one that got the same number after this one was removed. */
  readonly createdAt: number
  readonly epoch: number
}

/** One start or resume of a run. */
export interface Session {
  readonly pid: number
  readonly host: string
  readonly node: string
  /** JSON; names of environment variables, never their values. */
  readonly config: string
  readonly total: number | null
}

export interface Ending {
  readonly how: 'finished' | 'interrupted' | 'failed'
  readonly error: string | null
}

export const ROW = {
  task: 0,
  attempt: 1,
  agent: 2,
  worker: 3,
  again: 4,
  allRead: 5,
  begun: 6,
  start: 7,
  steps: 8,
  answer: 9,
  grade: 10,
  cached: 11,
  workerLeft: 12,
} as const

/** Numbers in rows count within the run; the thread turns them into keys (`keys.ts`). */
export type Row =
  | TaskRow
  | AttemptRow
  | AgentRow
  | WorkerRow
  | WorkerLeftRow
  | AgainRow
  | AllReadRow
  | BegunRow
  | StartRow
  | StepsRow
  | AnswerRow
  | GradeRow
  | CachedRow

export type TaskRow = [
  kind: 0,
  task: number,
  id: string,
  place: number | null,
  /** 0: none. */
  parent: number,
  parentAttempt: number,
  agent: number,
  input: Encoded,
  info: Encoded,
  dependsOn: string | null,
  options: string | null,
  groupId: string | null,
  rollout: number | null,
]

export type AttemptRow = [
  kind: 1,
  task: number,
  isSubTask: boolean,
  role: number,
  attempt: number,
  endedAt: number,
  status: TaskStatus,
  queuedUs: number,
  runUs: number,
  waitedUs: number,
  worker: number | null,
  errorCode: string | null,
  answer: Encoded,
  error: Encoded,
  logs: Encoded,
  usage: Usage | null,
  /** The start that its steps belong to; 0: it has none. */
  start: number,
  episode: EpisodeColumns | null,
  digest: string | null,
]

/** How the episode of an attempt ended. */
export interface EpisodeColumns {
  readonly ending: string
  readonly reward: number | null
  readonly success: 0 | 1 | null
  readonly finalObservation: Encoded
}

export type AgentRow = [
  kind: 2,
  agent: number,
  name: string,
  module: string,
  fingerprint: string | null,
  params: Encoded,
]
export type WorkerRow = [kind: 3, worker: number, id: string, host: string, pid: number | null, joinedAt: number]
/** `lost`: why, if it was not ended in an orderly way. */
export type WorkerLeftRow = [kind: 12, worker: number, leftAt: number, lost: string | null]
/**
 * A task that has a response runs again; the old response becomes superseded. `fresh`: its earlier attempts, and the
 * service answers stored for them, no longer count.
 */
export type AgainRow = [kind: 4, task: number, fresh: boolean]
/** The source of tasks has ended, so the total is the number of recorded tasks. */
export type AllReadRow = [kind: 5]
/** A task with `rerun: 'never'` is about to start. */
export type BegunRow = [kind: 6, task: number]
/** An attempt has run for 200 ms or has recorded a step. Starts are numbered within their session. */
export type StartRow = [kind: 7, start: number, task: number, attempt: number, worker: number | null, at: number]
/** Steps of a start; `first` is the index of the first one. */
export type StepsRow = [kind: 8, start: number, first: number, steps: PackedStep[]]
/** A task was graded. This grade replaces earlier ones. */
export type GradeRow = [
  kind: 10,
  grade: number,
  task: number,
  attempt: number,
  at: number,
  reward: number | null,
  success: 0 | 1 | null,
  grader: string,
  record: Encoded,
]
/** A durable service or `ctx.once` has answered an attempt of a task. `begun` = 1: the call is about to be made, and its answer is not known yet. */
export type AnswerRow = [
  kind: 9,
  answer: number,
  task: number,
  attempt: number,
  service: string,
  hash: Uint8Array,
  occurrence: number,
  at: number,
  value: Encoded,
  begun: 0 | 1,
]
/** A cached model reply, for all runs of the store. */
export type CachedRow = [
  kind: 11,
  key: Uint8Array,
  model: string,
  at: number,
  status: number,
  /** JSON. */
  headers: string,
  body: string,
]
