import type { ErrorCode } from '../errors.ts'
import type { TaskStatus } from '../task.ts'
import type { Encoded } from './values.ts'

/** What the driver tells the thread that writes run files, and what it hears. Rows are tuples: there are many of them. */
export type ToThread =
  | { type: 'open'; file: number; request: OpenRequest }
  | { type: 'begin'; file: number; session: Session }
  | { type: 'write'; file: number; rows: Row[] }
  | { type: 'end'; file: number; ending: Ending | undefined }

export type FromThread =
  | { type: 'done'; file: number; opened?: Opened }
  | { type: 'failed'; file: number; code: ErrorCode; message: string }
  /** Nothing can be written at the moment; it will be tried again. */
  | { type: 'waiting'; file: number; message: string }

/** Node posts messages of its own on the ports of threads: under --watch, the modules that a thread imports. */
export const isOurs = <Message extends ToThread | FromThread>(message: unknown): message is Message =>
  typeof (message as Partial<Message> | null | undefined)?.file === 'number'

export interface OpenRequest {
  readonly path: string
  readonly header: RunHeader
  /** `start`: there must be no such run; `resume`: there must be one. */
  readonly mode: 'start' | 'resume' | 'auto'
  readonly durability: 'normal' | 'full'
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
  /** False: the run is new. */
  readonly resumed: boolean
  /** The numbers that the next rows may have. */
  readonly next: { readonly agent: number; readonly worker: number; readonly task: number }
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

export const ROW = { task: 0, attempt: 1, agent: 2, worker: 3, again: 4, allRead: 5, begun: 6 } as const

export type Row = TaskRow | AttemptRow | AgentRow | WorkerRow | AgainRow | AllReadRow | BegunRow

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
  worker: number | null,
  errorCode: string | null,
  answer: Encoded,
  error: Encoded,
  trajectory: Encoded,
  logs: Encoded,
  usage: string | null,
]

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
 * The task runs again although it had a response, which becomes superseded. `fresh`: the attempts it has had do not
 * count any more.
 */
export type AgainRow = [kind: 4, task: number, fresh: boolean]
/** The source of tasks has ended: there are as many as were recorded. */
export type AllReadRow = [kind: 5]
/** The task is about to be started, and must never be started twice. */
export type BegunRow = [kind: 6, task: number]
