import { loraPython } from '../../../dist/train/lora/environment.js'
import { type LoraCore, loraCore } from '../../../dist/train/lora/lora-core.js'
import type { LoraOptions } from '../../../dist/train/lora/settings.js'
import { type Computing, Sidecar } from '../../../dist/train/lora/sidecar.js'
import type { TokenRow } from '../../../dist/train/row.js'
import { skipped } from '../../python/locked.ts'

/** Why the Python environment cannot be made here, if it cannot; under CI that is a failure. */
export async function whyNoLora(): Promise<string | undefined> {
  try {
    await loraPython((line) => void process.stderr.write(`${line}\n`))
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    return skipped('LoRA', (error as Error).message)
  }
}

/** A model of random weights, made in milliseconds. */
export const TINY = {
  ...{ model_type: 'llama', vocab_size: 64, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2 },
  ...{ num_attention_heads: 4, num_key_value_heads: 4, max_position_embeddings: 512, bos_token_id: null },
}
/**
 * With larger random weights: a LoRA adapter does not change the output layer, so it can make a model only as sure as that layer allows.
 */
export const TEACHABLE = { ...TINY, initializer_range: 0.08 }
export const tiny: LoraOptions = { base: { config: TINY }, rank: 4, alpha: 8, seed: 7 }

/** Python takes ten seconds to import PyTorch, transformers and PEFT: processes are used again, by one core after the other. */
const idle: Sidecar[] = []
const all = new Set<Sidecar>()

export async function takeSidecar(): Promise<Computing> {
  const sidecar = idle.pop() ?? (await Sidecar.start())
  all.add(sidecar)
  return {
    call: sidecar.call.bind(sidecar),
    get ended() {
      return sidecar.ended
    },
    close: async () => void (sidecar.ended || idle.includes(sidecar) || idle.push(sidecar)),
  }
}

export async function closeSidecars(): Promise<void> {
  await Promise.all([...all].map((sidecar) => sidecar.close()))
}

export const tinyCore = (options: Partial<LoraOptions> = {}): LoraCore =>
  loraCore({ ...tiny, ...options }, { start: takeSidecar })

/** Always the same numbers, from 0 to 1. */
export function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48271) % 2147483647
    return state / 2147483647
  }
}

export interface RowNumbers {
  readonly prompt: readonly number[]
  readonly completion: readonly number[]
  /** 0: a tool said it. */
  readonly mask: readonly number[]
  readonly advantage: number
}

/** Groups of rollouts that share a prompt, some with a tool's answer in the middle. */
export function someRollouts(groups: number, size: number, seed = 1): readonly RowNumbers[] {
  const random = numbers(seed)
  const draw = (below: number) => Math.floor(random() * below)
  return Array.from({ length: groups }, () => {
    const prompt = Array.from({ length: 3 + draw(8) }, () => draw(TINY.vocab_size))
    return Array.from({ length: size }, () => {
      const completion = Array.from({ length: 2 + draw(8) }, () => draw(TINY.vocab_size))
      const mask = completion.map((_, at) => (at === 0 || random() < 0.7 ? 1 : 0))
      return { prompt, completion, mask, advantage: 4 * random() - 2 }
    })
  }).flat()
}

/** `logProbs`: of the completion, by who acted. */
export function tokenRow(
  { prompt, completion, mask, advantage }: RowNumbers,
  logProbs: readonly number[],
  weight: number,
  more: Partial<TokenRow> = {},
): TokenRow {
  const ids = Int32Array.from([...prompt, ...completion])
  const padded = (values: readonly number[]) => Float64Array.from([...prompt.map(() => 0), ...values])
  return {
    ...{ kind: 'tokens', ids, mask: Uint8Array.from([...prompt.map(() => 0), ...mask]), temperature: 1, version: 0 },
    ...{ behavior: padded(logProbs), advantage: new Float64Array(ids.length).fill(advantage) },
    weight: new Float64Array(ids.length).fill(weight),
    ...more,
  }
}

/** Rows whose ratios meet every bound. `near`: what the model says now. */
export async function someRows(core: LoraCore, groups = 4, size = 4): Promise<readonly TokenRow[]> {
  const rollouts = someRollouts(groups, size)
  const blank = rollouts.map((one) =>
    tokenRow(
      one,
      one.completion.map(() => -4),
      1 / 50,
    ),
  )
  const { logProbs } = await core.forward(blank, 'current')
  const random = numbers(5)
  return blank.map((row, at) => ({
    ...row,
    behavior: logProbs[at]!.map((logProb) => logProb + 2 * random() - 1),
    proximal: logProbs[at]!.map((logProb) => logProb + 2 * random() - 1),
    temperature: 0.7 + 0.1 * (at % 3),
  }))
}

export function largestGap(one: readonly ArrayLike<number>[], other: readonly ArrayLike<number>[]): number {
  let gap = one.length === other.length ? 0 : Number.POSITIVE_INFINITY
  for (const [at, values] of one.entries())
    for (let i = 0; i < values.length; i++) gap = Math.max(gap, Math.abs(values[i]! - other[at]![i]!))
  return gap
}

/** Rows that take so many milliseconds and more to compute. */
export const longRows = (count: number): readonly TokenRow[] => {
  const random = numbers(11)
  return Array.from({ length: count }, () => {
    const ids = Array.from({ length: 100 }, () => Math.floor(random() * TINY.vocab_size))
    const one = { prompt: ids.slice(0, 50), completion: ids.slice(50), mask: ids.slice(50).map(() => 1), advantage: 1 }
    return tokenRow(
      one,
      one.completion.map(() => -4),
      1e-5,
    )
  })
}
