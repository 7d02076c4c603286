import type { ErrorCode } from '../errors.ts'

/** Messages between the driver and the thread of a learner. */
export type LearnerMethod = 'start' | 'update' | 'publish' | 'retire' | 'save' | 'load' | 'values'

/** How the thread finds the learner: by module and name, like agents. */
export interface LearnerThreadData {
  readonly module: string
  readonly name: string
  readonly options: unknown
  readonly memoryMb: number | undefined
}

export interface LearnerCall {
  readonly id: number
  readonly method: LearnerMethod
  readonly args: readonly unknown[]
}

export type FromLearner =
  /** Sent by the process of a learner, also while its thread computes. */
  | { readonly type: 'heartbeat' }
  /** A message for the user about a slow step. */
  | { readonly type: 'notice'; readonly line: string }
  | { readonly type: 'ready' }
  | { readonly type: 'unusable'; readonly error: SentError }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  /** `ended`: the learner is unusable, because its compute process died. */
  | { readonly type: 'error'; readonly id: number; readonly error: SentError; readonly ended: boolean }
  /** Sent by the process of a learner when its thread has exited. */
  | { readonly type: 'ended'; readonly how: string }

export interface SentError {
  readonly code: ErrorCode | undefined
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

/** The methods that every learner must have. */
export const LEARNER_METHODS: readonly Exclude<LearnerMethod, 'values'>[] = [
  'start',
  'update',
  'publish',
  'retire',
  'save',
  'load',
]
