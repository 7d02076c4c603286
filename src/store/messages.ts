import type { ErrorCode } from '../errors.ts'
import type { TaskStatus } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { Keep } from './prune.ts'
import type { Encoded } from './values.ts'

/** What the driver tells the thread that writes run files, and what it hears. Rows are tuples: there are many of them. */
export type ToThread =
  | { type: 'open'; file: number; request: OpenRequest }
  /** With a session: one that begins with these rows, if there are any. */
  | { type: 'write'; file: number; rows: Row[]; session: Session | undefined }
  | { type: 'end'; file: number; ending: Ending | undefined }
  /** The process ends. `done` is set when all is closed. */
  | { type: 'close'; done: Int32Array<SharedArrayBuffer> }

export type FromThread =
  | { type: 'done'; file: number; opened?: Opened; begun?: Begun }
  | { type: 'failed'; file: number; code: ErrorCode; message: string }
  /** Nothing can be written at the moment; it will be tried again. */
  | { type: 'waiting'; file: number; message: string }

/** Node posts messages of its own on the ports of threads: under --watch, the modules that a thread imports. */
export const isOurs = <Message extends ToThread | FromThread>(message: unknown): message is Message => {
  const { file, done } = (message ?? {}) as { file?: unknown; done?: unknown }
  return typeof file === 'number' || done instanceof Int32Array
}

export interface OpenRequest {
  readonly path: string
  /** The file may hold many runs; else it is that of one. */
  readonly shared: boolean
  readonly header: RunHeader
  /** `start`: there must be no such run; `resume`: there must be one. */
  readonly mode: 'start' | 'resume' | 'auto'
  readonly durability: 'normal' | 'full'
  /** Which older runs of a store of many are removed when this one begins. */
  readonly keep: Keep | undefined
}

/** What does not change between the sessions of a run. */
export interface RunHeader {
  readonly runId: string
  readonly seed: number
  readonly sequenceDependent: boolean
  readonly manyworlds: string
  readonly script: string | null
}

export interface Opened {
  /** The number of the run in its store; undefined: the run is new. */
  readonly run: number | undefined
  /** The numbers that the next rows may have. */
  readonly next: {
    readonly agent: number
    readonly worker: number
    readonly task: number
    readonly answer: number
    readonly grade: number
  }
}

/** A session that has begun: the run's number in its store, and the session's in its run. */
export interface Begun {
  readonly run: number
  /** When the run was begun: another run may get its number once it is removed. */
  readonly createdAt: number
  readonly epoch: number
}

/** One driver's time with a run, from its start to its end or death. */
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
} as const

/** Numbers in rows are the run's own; the thread makes keys of them (`keys.ts`). */
export type Row =
  | TaskRow
  | AttemptRow
  | AgentRow
  | WorkerRow
  | AgainRow
  | AllReadRow
  | BegunRow
  | StartRow
  | StepsRow
  | AnswerRow
  | GradeRow

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
export type WorkerRow = [kind: 3, worker: number, id: string, host: string, pid: number | null]
/**
 * The task runs again although it had a response, which becomes superseded. `fresh`: the attempts it has had, and the
 * answers that counted for them, do not count any more.
 */
export type AgainRow = [kind: 4, task: number, fresh: boolean]
/** The source of tasks has ended: there are as many as were recorded. */
export type AllReadRow = [kind: 5]
/** The task is about to be started, and must never be started twice. */
export type BegunRow = [kind: 6, task: number]
/** A lease of a task has run for a while, or recorded a step. Starts are numbered within their session. */
export type StartRow = [kind: 7, start: number, task: number, attempt: number, worker: number | null, at: number]
/** Steps of a start, the first of which is number `first`. */
export type StepsRow = [kind: 8, start: number, first: number, steps: PackedStep[]]
/** A task was graded; what was said of it before no longer counts. */
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
/** A service has answered an attempt of a task, and that counts. */
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
]
