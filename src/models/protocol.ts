import type { PermitOutcome } from './driver/limiter.ts'
import type { CallOptions, GenerateResult } from './language-model.ts'

/** Lists the models of the run; answered with `ModelDescriptions`. */
export const MODELS = 'manyworlds.models'
/** Calls a model through the driver; answered with a `ModelAnswer`, which is stored. */
export const MODEL = 'manyworlds.model'
/** The same for an object of an AI SDK provider; answered with an `ObjectAnswer`. */
export const MODEL_OBJECT = 'manyworlds.model-object'
/** For calls that workers make themselves: the answer is stored under this request, and permits refer to it. */
export const DIRECT = 'manyworlds.direct'
/** Answered with one part when the call may be made. The request stays open until the call is settled. */
export const PERMIT = 'manyworlds.permit'
export const SETTLE = 'manyworlds.settle'

/** Tells the driver something about calls that the user should know; a line says so once. */
export const NOTE = 'manyworlds.model-note'

export type ModelNote =
  /** A schema is sent without `strict`. */
  | { readonly kind: 'not-strict'; readonly model: string; readonly why: string }
  /** A task has ended while a call was under way. */
  | { readonly kind: 'not-awaited'; readonly model: string; readonly why?: undefined }

export const PATHS = ['/chat/completions', '/completions'] as const
export type ModelPath = (typeof PATHS)[number]

export interface ModelAsked {
  /** The model's name in the run. */
  readonly model: string
  readonly path: ModelPath
  /** The exact text to send. */
  readonly body: string
  /** The maximum number of tokens of the call. */
  readonly tokens: number
  /** The server may be loading this model, a version of a policy. */
  readonly mayLoad?: boolean
}

/** How a call went. */
export interface CallRecord {
  readonly ms: number
  readonly retries: number
  /** True if the answer came from the cache and no call was made. */
  readonly cached: boolean
}

export interface ModelAnswer extends CallRecord {
  readonly body: string
}

export interface ObjectAsked {
  readonly model: string
  readonly options: Omit<CallOptions, 'abortSignal'>
}

export interface ObjectAnswer extends CallRecord {
  readonly result: GenerateResult
}

export interface PermitAsked {
  readonly model: string
  /** Chosen by the worker; unique within its task. */
  readonly permit: number
  /** The request of the call that needs the permit. */
  readonly call: number
  readonly tokens: number
  readonly waitMs: number
  /** Milliseconds from now. */
  readonly delayMs: number
  readonly first: boolean
}

export interface SettleAsked {
  readonly permit: number
  readonly outcome: PermitOutcome
}
