import type { PermitOutcome } from './driver/limiter.ts'
import type { CallOptions, GenerateResult } from './language-model.ts'

/** What models of the run there are: answered with `ModelDescriptions`. */
export const MODELS = 'manyworlds.models'
/** Calls a model, from the driver; answered with a `ModelAnswer`. Its answers are stored. */
export const MODEL = 'manyworlds.model'
/** The same for an object of an AI SDK provider; answered with an `ObjectAnswer`. */
export const MODEL_OBJECT = 'manyworlds.model-object'
/** For calls that workers make themselves: who makes one stores its answer under this, and asks for permits. */
export const DIRECT = 'manyworlds.direct'
/** Answered with one part when the call may be made. The request stays open until the call is settled. */
export const PERMIT = 'manyworlds.permit'
export const SETTLE = 'manyworlds.settle'

export const PATHS = ['/chat/completions', '/completions'] as const
export type ModelPath = (typeof PATHS)[number]

export interface ModelAsked {
  /** Its name in the run. */
  readonly model: string
  readonly path: ModelPath
  /** The exact text to send. */
  readonly body: string
  /** The most tokens that it may take. */
  readonly tokens: number
}

/** How a call went. */
export interface CallRecord {
  readonly ms: number
  readonly retries: number
  /** It came from the cache: nobody was called. */
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
  /** Made up by the worker; unique for its task. */
  readonly permit: number
  /** The request for the call that it is for. */
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
