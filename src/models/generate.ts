import type { Message, ModelStep } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'

/** Common sampling options of model calls. */
export interface SamplingOptions {
  /** The model's name in `models` of the run. */
  readonly model: string
  /** The maximum number of tokens to generate. */
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: number
  readonly stop?: readonly string[]
  /** Additional fields of the request, in the server's names: `{ top_k: 20 }`. */
  readonly extraBody?: Readonly<Record<string, unknown>>
  /** Cancels the call when aborted. */
  readonly signal?: AbortSignal
  /** The role of the caller: steps of judges and simulated users are not trained on. Default `'agent'`. */
  readonly role?: ModelStep['role']
}

/** The argument of `ctx.generate()`. */
export interface GenerateOptions<Output = unknown> extends SamplingOptions {
  readonly system?: string
  /** A question, or a conversation. */
  readonly prompt: string | readonly Message[]
  /** Makes the answer JSON of this schema: a zod schema (or another Standard Schema), or a JSON schema. */
  readonly schema?: OutputSchema<Output>
}

/** A Standard Schema such as zod's (standardschema.dev), or a JSON schema, whose output type the caller declares. */
export type OutputSchema<Output> = StandardSchema<Output> | Readonly<Record<string, unknown>>

/** A schema of any library that follows Standard Schema, such as zod. */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly output: Output } | undefined
  }
}

/** The result of validating with a Standard Schema. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** The result of `ctx.generate()`. */
export interface Generated<Output = unknown> {
  readonly text: string
  /** With `schema`: the validated answer. */
  readonly output: Output
  readonly reasoning: string | undefined
  /** The server's value: `stop`, `length`, … */
  readonly finish: string
  readonly usage: Usage
  /** The sampled tokens, if the server returns them. */
  readonly tokens: GeneratedTokens | undefined
  /** The index of the trajectory step that records the call. */
  readonly step: number
}

/** Token ids and log-probabilities of an answer, if the server returns them. */
export interface GeneratedTokens {
  readonly ids: Int32Array
  readonly logProbs: Float64Array | null
}

/** The argument of `ctx.complete()`. */
export interface CompleteOptions extends SamplingOptions {
  /** Token ids of the model, or a text. */
  readonly prompt: readonly number[] | Int32Array | string
}

/** The result of `ctx.complete()`. */
export interface Completed {
  readonly text: string
  readonly finish: string
  readonly usage: Usage
  /** Undefined if the server does not return ids. */
  readonly tokens: GeneratedTokens | undefined
  /** The number of cached prompt tokens, if the server reports it. */
  readonly cachedTokens: number | undefined
  readonly step: number
}
