import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { checkBetween } from '../check-numbers.ts'

/** An adapter that Tinker, the hosted trainer of Thinking Machines, trains. */
export interface TinkerOptions {
  /** Of the policy. Default 'tinker'. */
  readonly name?: string
  /** The base model, as Tinker names it: `Qwen/Qwen3-4B-Instruct-2507`. */
  readonly base: string
  /** Of the LoRA adapter. Default 32. */
  readonly rank?: number
  /** Which layers have an adapter. Default: all of them. */
  readonly layers?: { readonly attention?: boolean; readonly mlp?: boolean; readonly unembedding?: boolean }
  /** Of the first weights of the adapter. Default 0. */
  readonly seed?: number
  /** Of Adam; learning rate and `clipNorm` are those of the algorithm. Defaults: Tinker's, .9, .95, 1e-12 and no decay. */
  readonly optimizer?: {
    readonly beta1?: number
    readonly beta2?: number
    readonly eps?: number
    readonly weightDecay?: number
  }
  /** The variable that has the key. Default `TINKER_API_KEY`. */
  readonly apiKeyEnv?: string
  /** Default: the service. */
  readonly baseURL?: string
  /** The longest that one operation may take, with its time in Tinker's queue. Default 30 minutes. */
  readonly timeoutMs?: number
  /** For how long calls that fail are tried again. Default 5 minutes. */
  readonly retryMs?: number
  /** After which Tinker deletes what is saved there, from an hour to ten years. Default: it stays until you delete it. */
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

/** Checks options once, before anything is sent. */
export function checkedTinker(options: TinkerOptions): TinkerSettings {
  checkKeys(options, [...KEYS, ...LIMIT_KEYS], '`tinker`')
  const { name = 'tinker', base, rank = 32, layers = {}, seed = 0, optimizer = {} } = options
  const { apiKeyEnv = 'TINKER_API_KEY', baseURL = BASE_URL, timeoutMs = TIMEOUT_MS, retryMs = RETRY_MS } = options
  const { ttlSeconds } = options
  for (const [key, value] of Object.entries({ name, base, apiKeyEnv, baseURL }))
    if (typeof value !== 'string' || value === '') refuse(`\`${key}\` must be a text; it is ${String(value)}`)
  if (!/^https?:$/.test(URL.parse(baseURL)?.protocol ?? '')) refuse(`\`baseURL\` must begin with http:// or https://`)
  for (const [key, value] of Object.entries({ rank, seed })) checkWhole(key, value, key === 'rank' ? 1 : 0)
  checkKeys(layers, ['attention', 'mlp', 'unembedding'], '`layers`')
  checkKeys(optimizer, ['beta1', 'beta2', 'eps', 'weightDecay'], '`optimizer`')
  const { attention = true, mlp = true, unembedding = true } = layers
  if (!(attention || mlp || unembedding)) refuse('`layers`: at least one kind of layers must have an adapter')
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
    refuse(`\`${key}\` must be a whole number from ${least}; it is ${value}`)
}

function refuse(message: string): never {
  throw new ManyworldsError('CONFIG_INVALID', message)
}
