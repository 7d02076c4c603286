import type { GivenModel } from './language-model.ts'

/** A model behind a server that speaks OpenAI's chat completions: nearly all do, from vLLM to hosted ones. */
export interface ModelSettings {
  /** Up to and with the version: `https://api.example.com/v1`. */
  readonly baseURL: string
  /** What the server calls the model. */
  readonly model: string
  /** The variable of the driver's environment that has the key. Workers never get that variable. Left out: no key is sent. */
  readonly apiKeyEnv?: string
  /** What the server allows. Left out: the limiter finds out by itself how fast it can go. */
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  /** Calls at the same time. Default: no limit of its own. */
  readonly maxConcurrent?: number
  /** USD per million tokens. */
  readonly price?: ModelPrice
  /** Sent with every call. Values are secrets: they are not recorded. */
  readonly headers?: Readonly<Record<string, string>>
  /** Fields for the body of every call, such as `{ top_k: 20 }`. What a call says itself comes first. */
  readonly extraBody?: Readonly<Record<string, unknown>>
  /** Base URLs of further servers with the same model: calls go to the one with the fewest under way. */
  readonly replicas?: readonly string[]
  /**
   * Who makes the calls. `'driver'`: the driver, which has the key. `'direct'`: the worker itself, with a permit of the driver.
   * Default: `'direct'` without a key, else `'driver'`. With a key, `'direct'` gives the key to workers.
   */
  readonly via?: 'driver' | 'direct'
  /**
   * Asks the server for token ids and log-probabilities, which training needs. `'processed'`: the server gives log-probabilities after temperature and
   * penalties (vLLM with `--logprobs-mode processed_logprobs`); `true`: before. Default false.
   */
  readonly tokens?: boolean | 'processed'
  /** Milliseconds for one call. A call that takes longer is cut, and tried again. Default 300,000. */
  readonly timeoutMs?: number
  /** Milliseconds that a call may wait for its turn, its task's clock standing meanwhile. Default 600,000. */
  readonly permitTimeoutMs?: number
  /** How often a call is tried again that failed in passing: the server was down, or too slow. Default 6. */
  readonly maxRetries?: number
}

export interface ModelPrice {
  readonly input?: number
  readonly output?: number
  /** For input tokens that the server had in its cache. Default: as `input`. */
  readonly cachedInput?: number
}

/** Models by name: settings, or an object of an AI SDK provider, which stays in the driver. */
export type ModelsConfig = Readonly<Record<string, ModelSettings | GivenModel>>

export const DEFAULT_TIMEOUT_MS = 300_000
export const DEFAULT_PERMIT_MS = 600_000
export const DEFAULT_RETRIES = 6

/** What a worker is told of a model. Keys only of those that workers call themselves, and that the user wants so. */
export interface ModelDescription {
  readonly kind: 'server' | 'object'
  /** What the server calls it. */
  readonly model: string
  readonly via: 'driver' | 'direct'
  readonly price: ModelPrice | undefined
  readonly extraBody: Readonly<Record<string, unknown>> | undefined
  readonly tokens: boolean | 'processed'
  readonly permitMs: number
  /** For direct calls. */
  readonly direct?: DirectDescription
}

export interface DirectDescription {
  readonly urls: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly maxRetries: number
}

/** One that cannot be called, and why. */
export interface UnusableModel {
  readonly kind: 'unusable'
  readonly why: string
}

export type ModelDescriptions = Readonly<Record<string, ModelDescription | UnusableModel>>
