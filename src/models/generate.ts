import type { Message, ModelStep } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'

/** What most calls of a model say about sampling. */
interface SamplingOptions {
  /** Its name in `models` of the run. */
  readonly model: string
  /** The most tokens to generate. */
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: number
  readonly stop?: readonly string[]
  /** Further fields of the request, as the server names them: `{ top_k: 20 }`. */
  readonly extraBody?: Readonly<Record<string, unknown>>
  /** Takes the call back when it is aborted. */
  readonly signal?: AbortSignal
  /** Who calls: steps of judges and simulated users are not trained. Default `'agent'`. */
  readonly role?: ModelStep['role']
}

/** The argument of `ctx.generate()`. */
export interface GenerateOptions<Output = unknown> extends SamplingOptions {
  readonly system?: string
  /** A question, or a conversation. */
  readonly prompt: string | readonly Message[]
  /** The answer is JSON of this schema: one of zod (or another library of the Standard Schema), or a JSON schema. */
  readonly schema?: OutputSchema<Output>
}

/** A schema of zod and others (standardschema.dev), or a JSON schema, whose values have the type that the caller says. */
export type OutputSchema<Output> = StandardSchema<Output> | Readonly<Record<string, unknown>>

export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly output: Output } | undefined
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

export interface Generated<Output = unknown> {
  readonly text: string
  /** With `schema`: the answer, checked. */
  readonly output: Output
  readonly reasoning: string | undefined
  /** As the server says it: `stop`, `length`, … */
  readonly finish: string
  readonly usage: Usage
  /** What was sampled, where the server says it. */
  readonly tokens: GeneratedTokens | undefined
  /** The step of the trajectory that has the call. */
  readonly step: number
}

export interface GeneratedTokens {
  readonly ids: Int32Array
  readonly logProbs: Float64Array | null
}

/** The argument of `ctx.complete()`. */
export interface CompleteOptions extends SamplingOptions {
  /** Token ids of the model, or a text. */
  readonly prompt: readonly number[] | Int32Array | string
}

export interface Completed {
  readonly text: string
  readonly finish: string
  readonly usage: Usage
  /** Undefined if the server does not return ids. */
  readonly tokens: GeneratedTokens | undefined
  /** How many tokens of the prompt the server had in its cache, if it says so. */
  readonly cachedTokens: number | undefined
  readonly step: number
}
