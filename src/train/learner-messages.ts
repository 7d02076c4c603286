import type { ErrorCode } from '../errors.ts'

/** What crosses between the driver and the thread of a learner. */
export type LearnerMethod = 'start' | 'update' | 'publish' | 'retire' | 'save' | 'load' | 'values'

/** Where the thread finds the learner: like agents, it travels by module and name. */
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
  | { readonly type: 'ready' }
  | { readonly type: 'unusable'; readonly error: SentError }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  /** `ended`: it can do nothing more, because the process that it computes in died. */
  | { readonly type: 'error'; readonly id: number; readonly error: SentError; readonly ended: boolean }
  /** Said by the process of a learner whose thread is gone. */
  | { readonly type: 'ended'; readonly how: string }

export interface SentError {
  readonly code: ErrorCode | undefined
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

/** Those that every learner has. */
export const LEARNER_METHODS: readonly Exclude<LearnerMethod, 'values'>[] = [
  'start',
  'update',
  'publish',
  'retire',
  'save',
  'load',
]
