import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loraPython } from '../../../dist/train/lora/environment.js'
import type { LoraCore } from '../../../dist/train/lora/lora-core.js'
import type { Sampler } from '../../../dist/train/lora/serve/start-sampler.js'
import type { LoraOptions } from '../../../dist/train/lora/settings.js'
import { runPython, skipped } from '../../python/locked.ts'
import { numbers, TINY, tokenRow } from './tiny.ts'

const SCRIPT_MS = 120_000

/** Why the LoRA environment cannot be made here, if it cannot; under CI that is a failure. */
export async function whyNoLora(): Promise<string | undefined> {
  try {
    await loraPython((line) => void process.stderr.write(`${line}\n`))
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    return skipped('the LoRA environment', (error as Error).message)
  }
}

/** A random model with a tokenizer of bytes and a chat template. */
export async function talkingTiny(): Promise<LoraOptions> {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-tokenizer-'))
  const script = new URL('../python/tiny_tokenizer.py', import.meta.url)
  await runPython(await loraPython(() => {}), script, { input: { folder }, timeoutMs: SCRIPT_MS })
  const config = { ...TINY, vocab_size: 259, max_position_embeddings: 1024, pad_token_id: 0, eos_token_id: 2 }
  return { base: { config, tokenizer: folder }, rank: 4, alpha: 8, seed: 7 }
}

/** Some steps in any direction, so that the adapter is not 0. */
export async function learnSomething(core: LoraCore, seed: number): Promise<Uint8Array> {
  const random = numbers(seed)
  const ids = (count: number) => Array.from({ length: count }, () => Math.floor(random() * 259))
  for (let step = 0; step < 2; step++) {
    const completion = ids(8)
    const row = { prompt: ids(4), completion, mask: completion.map(() => 1), advantage: 1 }
    const behavior = completion.map(() => -4)
    await core.forwardBackward([tokenRow(row, behavior, 1 / 8)], { name: 'reinforce' })
    await core.optimStep({ lr: 0.05 })
  }
  return core.weights()
}

export interface Reply {
  readonly model: string
  readonly prompt_token_ids: readonly number[]
  readonly prompt_prefix_used?: boolean
  readonly usage: { readonly completion_tokens: number }
  readonly choices: readonly [
    {
      readonly text?: string
      readonly message?: { readonly role: string; readonly content: string | null }
      readonly finish_reason: string
      readonly token_ids: readonly number[]
      readonly logprobs: { readonly content: readonly { readonly logprob: number; readonly token: string }[] }
    },
  ]
}

export interface Answered {
  readonly status: number
  readonly reply: Reply
  readonly error: string | undefined
}

export async function post(
  { baseURL, apiKey }: Pick<Sampler, 'baseURL' | 'apiKey'>,
  path: string,
  body: object,
  signal: AbortSignal = AbortSignal.timeout(120_000),
): Promise<Answered> {
  const response = await fetch(`${baseURL}${path}`, {
    ...{ method: 'POST', signal, headers: { authorization: `Bearer ${apiKey}` } },
    body: JSON.stringify({ logprobs: true, return_token_ids: true, ...body }),
  })
  const reply = (await response.json()) as Reply & { error?: { message: string } }
  return { status: response.status, reply, error: reply.error?.message }
}

/** What must be the same whatever was sampled beside it. */
export const bitsOf = ({ reply: { choices, prompt_token_ids } }: Answered) => ({
  prompt: prompt_token_ids,
  tokens: choices[0].token_ids,
  logProbs: choices[0].logprobs.content.map(({ logprob }) => logprob),
  finish: choices[0].finish_reason,
})
