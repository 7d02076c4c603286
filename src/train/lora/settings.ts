import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { cacheFolder } from '../../private-folder.ts'
import { checkKeys } from '../check-keys.ts'

/** Where the frozen weights come from. */
export type LoraBase =
  /** A transformers folder, or the name of a model on the hub. */
  | string
  /** A llama.cpp file; converted once, into the cache folder. */
  | { readonly gguf: string }
  /** Random weights, for tests: `model_type` and other fields of a transformers configuration. */
  | { readonly config: Readonly<Record<string, unknown>>; readonly tokenizer?: string }

/** Options of a LoRA policy. They must be the same for acting and training. */
export interface LoraOptions {
  /** Default `lora`. */
  readonly name?: string
  readonly base: LoraBase
  /** The rank of the two matrices added to each layer. Default 16. */
  readonly rank?: number
  /** The adapter is scaled by alpha / rank. Default 32. */
  readonly alpha?: number
  /** Names of the layers to train. Default `'all-linear'`: all linear layers except the output layer. */
  readonly targets?: 'all-linear' | readonly string[]
  /** Options of AdamW. Defaults: betas [.9, .99], eps 1e-8, weightDecay 0. */
  readonly optimizer?: Partial<LoraOptimizer>
  /** The type of the base model's weights; the adapter is float32. Default `'float32'`. */
  readonly dtype?: 'float32' | 'bfloat16' | 'float16'
  /** A PyTorch device: `'cpu'`, `'cuda:1'`. Default `'auto'`: the GPUs, if there are any. */
  readonly device?: string
  /** CPU threads of PyTorch. Default 1. */
  readonly threads?: number
  /** The seed of the adapter's initial weights. Default 0. */
  readonly seed?: number
  /** Compute rows with a common prefix as one sequence. Default true. */
  readonly packed?: boolean
  /** Whether a missing base model may be downloaded from the hub. Default false. */
  readonly download?: boolean
}

export interface LoraOptimizer {
  readonly betas: readonly [number, number]
  readonly eps: number
  readonly weightDecay: number
}

/** Validated options with all defaults. */
export interface LoraSettings {
  readonly name: string
  readonly base: LoraBase
  readonly lora: {
    readonly rank: number
    readonly alpha: number
    readonly targets: 'all-linear' | readonly string[]
  }
  readonly optimizer: LoraOptimizer
  readonly dtype: 'float32' | 'bfloat16' | 'float16'
  readonly device: string
  readonly threads: number
  readonly seed: number
  readonly packed: boolean
  readonly download: boolean
  /** Where converted base models are kept. */
  readonly cache: string
}

export const LORA_KEYS = [
  ...['name', 'base', 'rank', 'alpha', 'targets', 'optimizer', 'dtype', 'device', 'threads', 'seed', 'packed'],
  'download',
]
const OPTIMIZER: LoraOptimizer = { betas: [0.9, 0.99], eps: 1e-8, weightDecay: 0 }
const DTYPES = ['float32', 'bfloat16', 'float16'] as const

/** Validates options before Python is started. */
export function checkedLora(options: LoraOptions): LoraSettings {
  checkKeys(options, LORA_KEYS, 'the options of a LoRA policy')
  const { name = 'lora', base, rank = 16, alpha = 32, targets = 'all-linear', dtype = 'float32' } = options
  const { device = 'auto', threads = 1, seed = 0, packed = true, download = false } = options
  if (typeof name !== 'string' || name === '') refuse(`\`name\` must be a non-empty string, it is ${String(name)}`)
  checkBase(base)
  checkWhole('rank', rank, 1)
  checkWhole('threads', threads, 1)
  checkWhole('seed', seed, 0)
  if (!(alpha > 0)) refuse(`\`alpha\` must be above 0, it is ${alpha}`)
  if (targets !== 'all-linear' && !(Array.isArray(targets) && targets.length > 0))
    refuse("`targets` must be 'all-linear' or names of layers, such as ['q_proj', 'v_proj']")
  if (!DTYPES.includes(dtype)) refuse(`unknown dtype ${JSON.stringify(dtype)}; use one of ${DTYPES.join(', ')}`)
  const lora = { rank, alpha, targets }
  const optimizer = checkedOptimizer(options.optimizer ?? {})
  const cache = join(cacheFolder('models'))
  return { ...{ name, base, lora, optimizer, dtype, device, threads, seed, packed, download, cache } }
}

function checkBase(base: LoraBase | undefined): void {
  if (typeof base === 'string' ? base !== '' : base && ('gguf' in base || 'config' in base)) return
  refuse('`base` must be a folder, the name of a model on the hub, { gguf: file }, or { config } for random weights')
}

function checkedOptimizer(options: Partial<LoraOptimizer>): LoraOptimizer {
  checkKeys(options, Object.keys(OPTIMIZER), '`optimizer`')
  const { betas, eps, weightDecay } = { ...OPTIMIZER, ...options }
  if (betas.length !== 2 || !betas.every((beta) => beta >= 0 && beta < 1))
    refuse(`\`betas\` must be two numbers of at least 0 and below 1, they are ${betas.join(', ')}`)
  if (!(eps > 0)) refuse(`\`eps\` must be above 0, it is ${eps}`)
  if (!(weightDecay >= 0)) refuse(`\`weightDecay\` must be at least 0, it is ${weightDecay}`)
  return { betas, eps, weightDecay }
}

function checkWhole(what: string, value: number, min: number): void {
  if (!Number.isSafeInteger(value) || value < min)
    refuse(`\`${what}\` must be a whole number of at least ${min}, it is ${value}`)
}

function refuse(problem: string): never {
  throw new ManyworldsError('POLICY_INVALID', `LoRA: ${problem}`)
}
