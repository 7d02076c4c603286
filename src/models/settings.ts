import type { GivenModel } from './language-model.ts'

/** A model on a server with OpenAI's chat completions API, which nearly all servers have, from vLLM to hosted ones. */
export interface ModelSettings {
  /** Including the version: `https://api.example.com/v1`. */
  readonly baseURL: string
  /** The server's name of the model. */
  readonly model: string
  /**
   * The environment variable of the driver that contains the API key. Workers never get this variable. Default: no key
   * is sent.
   */
  readonly apiKeyEnv?: string
  /** The server's limits. Default: the limiter finds the rate that the server accepts. */
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  /** Maximum concurrent calls. Default: no separate limit. */
  readonly maxConcurrent?: number
  /** USD per million tokens. */
  readonly price?: ModelPrice
  /** Sent with every call. Values are treated as secrets and not recorded. */
  readonly headers?: Readonly<Record<string, string>>
  /** Fields for the body of every call, such as `{ top_k: 20 }`. Fields of the call itself override them. */
  readonly extraBody?: Readonly<Record<string, unknown>>
  /** Base URLs of other servers with the same model: calls go to the one with the fewest in flight. */
  readonly replicas?: readonly string[]
  /**
   * Who makes the calls. `'driver'`: the driver, which has the key. `'direct'`: the worker itself, with a permit from
   * the driver. Default: `'direct'` without a key, else `'driver'`. With a key, `'direct'` gives the key to workers.
   */
  readonly via?: 'driver' | 'direct'
  /**
   * Requests token ids and log-probabilities, which training needs. `'processed'`: the server returns log-probabilities
   * after temperature and penalties (vLLM with `--logprobs-mode processed_logprobs`); `true`: before. Default false.
   */
  readonly tokens?: boolean | 'processed'
  /** Timeout of one call in milliseconds, after which it is retried. Default 300,000. */
  readonly timeoutMs?: number
  /**
   * How long a call may wait for a permit, in milliseconds; the task's timeout is paused meanwhile. Default 600,000.
   */
  readonly permitTimeoutMs?: number
  /** How often a call is retried after a transient failure, such as a server that is down or too slow. Default 6. */
  readonly maxRetries?: number
}

/** Dollars per million tokens. */
export interface ModelPrice {
  readonly input?: number
  readonly output?: number
  /** For cached input tokens. Default: `input`. */
  readonly cachedInput?: number
}

/** Models by name: settings, or an object of an AI SDK provider, which stays in the driver. */
export type ModelsConfig = Readonly<Record<string, ModelSettings | GivenModel>>

export const DEFAULT_TIMEOUT_MS = 300_000
export const DEFAULT_PERMIT_MS = 600_000
export const DEFAULT_RETRIES = 6

/**
 * What a worker is told about a model. It contains the key only if workers call the model themselves, as the user
 * requested.
 */
export interface ModelDescription {
  readonly kind: 'server' | 'object'
  /** The server's name of the model. */
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
  /** For errors. */
  readonly apiKeyEnv: string | undefined
}

/** A model that cannot be called, with the reason. */
export interface UnusableModel {
  readonly kind: 'unusable'
  readonly why: string
}

export type ModelDescriptions = Readonly<Record<string, ModelDescription | UnusableModel>>
