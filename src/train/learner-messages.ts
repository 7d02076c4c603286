import type { ErrorCode } from '../errors.ts'
import type { Learner } from './learner.ts'

/** What crosses between the driver and the thread of a learner. */
export type LearnerMethod = 'start' | 'update' | 'publish' | 'retire' | 'save' | 'load'

/** Where the thread finds the learner: like agents, it travels by module and name. */
export interface LearnerThreadData {
  readonly module: string
  readonly name: string
  readonly options: unknown
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
  | { readonly type: 'error'; readonly id: number; readonly error: SentError }

export interface SentError {
  readonly code: ErrorCode | undefined
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

export const LEARNER_METHODS: readonly (LearnerMethod & keyof Learner)[] = [
  'start',
  'update',
  'publish',
  'retire',
  'save',
  'load',
]
