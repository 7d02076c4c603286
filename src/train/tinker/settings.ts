import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { checkBetween } from '../check-numbers.ts'

/** An adapter trained by Tinker, the hosted trainer of Thinking Machines. */
export interface TinkerOptions {
  /** The name of the policy. Default 'tinker'. */
  readonly name?: string
  /** The base model, by Tinker's name: `Qwen/Qwen3-4B-Instruct-2507`. */
  readonly base: string
  /** The rank of the LoRA adapter. Default 32. */
  readonly rank?: number
  /** Which layers have an adapter. Default: all. */
  readonly layers?: { readonly attention?: boolean; readonly mlp?: boolean; readonly unembedding?: boolean }
  /** The seed of the adapter's initial weights. Default 0. */
  readonly seed?: number
  /**
   * Options of Adam; the learning rate and `clipNorm` are set by the algorithm. Defaults are Tinker's: .9, .95, 1e-12
   * and no decay.
   */
  readonly optimizer?: {
    readonly beta1?: number
    readonly beta2?: number
    readonly eps?: number
    readonly weightDecay?: number
  }
  /** The environment variable with the API key. Default `TINKER_API_KEY`. */
  readonly apiKeyEnv?: string
  /** Default: the hosted service. */
  readonly baseURL?: string
  /** The timeout of one operation, including its time in Tinker's queue. Default 30 minutes. */
  readonly timeoutMs?: number
  /** How long failed calls are retried. Default 5 minutes. */
  readonly retryMs?: number
  /** When Tinker deletes saved checkpoints, from one hour to ten years. Default: never. */
  readonly ttlSeconds?: number
}

export interface TinkerSettings {
  readonly name: string
  readonly base: string
  readonly rank: number
  readonly layers: { readonly attention: boolean; readonly mlp: boolean; readonly unembedding: boolean }
  readonly seed: number
  readonly optimizer: {
    readonly beta1: number
    readonly beta2: number
    readonly eps: number
    readonly weightDecay: number
  }
  readonly apiKeyEnv: string
  readonly baseURL: string
  readonly timeoutMs: number
  readonly retryMs: number
  readonly ttlSeconds: number | undefined
}

const BASE_URL = 'https://tinker.thinkingmachines.dev/services/tinker-prod'
const TIMEOUT_MS = 30 * 60_000
const RETRY_MS = 5 * 60_000
const HOUR_S = 3600
const TEN_YEARS_S = 10 * 365 * 24 * HOUR_S

const KEYS = ['name', 'base', 'rank', 'layers', 'seed', 'optimizer', 'apiKeyEnv', 'baseURL']
const LIMIT_KEYS = ['timeoutMs', 'retryMs', 'ttlSeconds']

/** Validates options before anything is sent. */
export function checkedTinker(options: TinkerOptions): TinkerSettings {
  checkKeys(options, [...KEYS, ...LIMIT_KEYS], '`tinker`')
  const { name = 'tinker', base, rank = 32, layers = {}, seed = 0, optimizer = {} } = options
  const { apiKeyEnv = 'TINKER_API_KEY', baseURL = BASE_URL, timeoutMs = TIMEOUT_MS, retryMs = RETRY_MS } = options
  const { ttlSeconds } = options
  for (const [key, value] of Object.entries({ name, base, apiKeyEnv, baseURL }))
    if (typeof value !== 'string' || value === '')
      refuse(`\`${key}\` must be a non-empty string; it is ${String(value)}`)
  if (!/^https?:$/.test(URL.parse(baseURL)?.protocol ?? '')) refuse(`\`baseURL\` must start with http:// or https://`)
  for (const [key, value] of Object.entries({ rank, seed })) checkWhole(key, value, key === 'rank' ? 1 : 0)
  checkKeys(layers, ['attention', 'mlp', 'unembedding'], '`layers`')
  checkKeys(optimizer, ['beta1', 'beta2', 'eps', 'weightDecay'], '`optimizer`')
  const { attention = true, mlp = true, unembedding = true } = layers
  if (!(attention || mlp || unembedding)) refuse('`layers` must enable at least one kind of layer')
  const { beta1 = 0.9, beta2 = 0.95, eps = 1e-12, weightDecay = 0 } = optimizer
  for (const [key, value] of Object.entries({ beta1, beta2, eps, weightDecay })) checkBetween(key, value, 0, 1)
  for (const [key, value] of Object.entries({ timeoutMs, retryMs })) checkBetween(key, value, 1, 2 ** 31 - 1)
  if (ttlSeconds !== undefined) checkBetween('ttlSeconds', ttlSeconds, HOUR_S, TEN_YEARS_S)
  return {
    ...{ name, base, rank, seed, apiKeyEnv, timeoutMs, retryMs, ttlSeconds },
    layers: { attention, mlp, unembedding },
    optimizer: { beta1, beta2, eps, weightDecay },
    baseURL: baseURL.replace(/\/+$/, ''),
  }
}

function checkWhole(key: string, value: number, least: number): void {
  if (!(Number.isInteger(value) && value >= least))
    refuse(`\`${key}\` must be a whole number of at least ${least}; it is ${value}`)
}

function refuse(message: string): never {
  throw new ManyworldsError('CONFIG_INVALID', message)
}
