import { randomFrom } from '../../../dist/random.js'
import { grpo } from '../../../dist/train/index.js'
import type { LoraCore } from '../../../dist/train/lora/lora-core.js'
import type { LoraOptions } from '../../../dist/train/lora/settings.js'
import type { TokenRow } from '../../../dist/train/row.js'
import { TEACHABLE, tiny } from './tiny.ts'

const TOKENS = 8
const LENGTH = 3
/** So many tokens that the whole distribution can be asked for. */
export const counting: LoraOptions = {
  ...tiny,
  rank: 8,
  alpha: 16,
  base: { config: { ...TEACHABLE, vocab_size: TOKENS } },
}

interface Rollout {
  readonly ids: number[]
  readonly logProbs: number[]
}

const blank = (ids: readonly number[]): TokenRow => ({
  ...{
    kind: 'tokens',
    ids: Int32Array.from(ids),
    mask: Uint8Array.from(ids, (_, at) => (at === ids.length - 1 ? 1 : 0)),
  },
  ...{ behavior: new Float64Array(ids.length), advantage: new Float64Array(ids.length) },
  ...{ weight: new Float64Array(ids.length).fill(1), temperature: 1, version: 0 },
})

/** Samples the next token of each rollout. */
async function sampleNext(core: LoraCore, rollouts: readonly Rollout[], random: () => number): Promise<void> {
  const rows = rollouts.flatMap(({ ids }) => Array.from({ length: TOKENS }, (_, token) => blank([...ids, token])))
  const { logProbs } = await core.forward(rows, 'current')
  for (const [at, { ids, logProbs: chosen }] of rollouts.entries()) {
    const all = logProbs.slice(at * TOKENS, (at + 1) * TOKENS).map((row) => row.at(-1)!)
    let left = random()
    const token = all.findIndex((logProb) => (left -= Math.exp(logProb)) < 0)
    const taken = token === -1 ? TOKENS - 1 : token
    ids.push(taken)
    chosen.push(all[taken]!)
  }
}

/** The share of tokens that count on from the one before: 1/8 by chance. */
const rewardOf = ({ ids }: Rollout) =>
  ids.slice(1).filter((token, at) => token === (ids[at]! + 1) % TOKENS).length / LENGTH

/** A group of rollouts for each first token, compared by GRPO. */
export async function collect(
  core: LoraCore,
  update: number,
  size: number,
): Promise<{ rows: readonly TokenRow[]; reward: number }> {
  const random = randomFrom({ seed: 1, purpose: 'run', stream: '', task: `${update}`, visit: 0, rollout: 1 })
  const groups = Array.from({ length: TOKENS }, (_, first) =>
    Array.from({ length: size }, (): Rollout => ({ ids: [first], logProbs: [] })),
  )
  for (let i = 0; i < LENGTH; i++) await sampleNext(core, groups.flat(), random)
  const rewards = groups.map((group) => group.map(rewardOf))
  const { advantages } = grpo(rewards)
  const rows = groups.flatMap((group, at) =>
    group.map(({ ids, logProbs }, i) => ({
      ...blank(ids),
      mask: Uint8Array.from(ids, (_, place) => (place === 0 ? 0 : 1)),
      behavior: Float64Array.from([0, ...logProbs]),
      advantage: new Float64Array(ids.length).fill(advantages[at]![i]!),
      weight: new Float64Array(ids.length).fill(1 / (TOKENS * size * LENGTH)),
    })),
  )
  const all = rewards.flat()
  return { rows, reward: all.reduce((sum, reward) => sum + reward, 0) / all.length }
}
