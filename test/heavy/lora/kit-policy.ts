import type { OpenPolicy } from '../../../dist/agents/policy.js'
import { gradientLearner } from '../../../dist/train/gradient-learner.js'
import type { Batch, Learner } from '../../../dist/train/learner.js'
import { perRow, rowParts } from '../../../dist/train/lora/row-parts.js'
import { checkedLora } from '../../../dist/train/lora/settings.js'
import type { Computing } from '../../../dist/train/lora/sidecar.js'
import { type ActionRow, checkRows, type TokenRow } from '../../../dist/train/row.js'
import { TEACHABLE, takeSidecar, tiny, tinyCore } from './tiny.ts'

/** For the kit, whose tasks have observations and candidates: each of them is a token. */
const OBSERVATIONS = ['two arms', 'red', 'amber', 'green']
const CANDIDATES = ['left', 'right', 'stop', 'wait', 'go']

const seen = (observation: unknown) =>
  1 + OBSERVATIONS.indexOf((observation as { light?: string }).light ?? (observation as string))
const done = (candidate: unknown) => 10 + CANDIDATES.indexOf(candidate as string)

const pair = (observation: unknown, candidate: unknown): TokenRow => ({
  ...{ kind: 'tokens', ids: Int32Array.of(seen(observation), done(candidate)), mask: Uint8Array.of(0, 1) },
  ...{ behavior: new Float64Array(2), advantage: new Float64Array(2), weight: Float64Array.of(0, 1) },
  ...{ temperature: 1, version: 0 },
})

const tokens = ({ observation, candidates, index, behavior, advantage, weight, version }: ActionRow): TokenRow => ({
  ...{ ...pair(observation, candidates[index]), version, behavior: Float64Array.of(0, behavior) },
  ...{ advantage: Float64Array.of(0, advantage), weight: Float64Array.of(0, weight) },
})

const options = { ...tiny, base: { config: TEACHABLE }, seed: 8 }

/** A learner of a LoRA model that takes actions among candidates. */
export function kitLearner(): Learner {
  const learner = gradientLearner(tinyCore(options), { loss: { name: 'clip', kl: 1e-4 }, lr: 0.02, clipNorm: 1 })
  const update = learner.update.bind(learner)
  return Object.assign(learner, {
    async update({ rows }: Batch) {
      checkRows(rows)
      return update({ rows: rows.map((row) => tokens(row as ActionRow)) })
    },
  })
}

let actor: Promise<Computing> | undefined

async function openActor(): Promise<Computing> {
  const sidecar = await takeSidecar()
  await sidecar.call('open', { ...checkedLora(options), role: 'train' })
  return sidecar
}

/** Chooses among candidates by their probabilities as next tokens. */
export async function openKitPolicy(bytes: Uint8Array): Promise<OpenPolicy> {
  actor ??= openActor()
  const sidecar = await actor
  await sidecar.call('loadWeights', {}, [bytes])
  const known = new Map<unknown, Promise<readonly number[]>>()
  const logProbs = async (observation: unknown, candidates: readonly unknown[]) => {
    const rows = candidates.map((candidate) => pair(observation, candidate))
    const { parts } = await sidecar.call('forward', { of: 'current' }, rowParts(rows, 'kit'))
    return perRow(parts[0]!, rows).map((row) => row[1]!)
  }
  return {
    async act({ observation, candidates, random }) {
      const key = JSON.stringify([observation, candidates])
      if (!known.has(key)) known.set(key, logProbs(observation, candidates!))
      const found = await known.get(key)!
      let left = random() * found.reduce((sum, logProb) => sum + Math.exp(logProb), 0)
      const index = Math.max(
        0,
        found.findIndex((logProb) => (left -= Math.exp(logProb)) < 0),
      )
      return { action: candidates![index], index, logProb: found[index]! }
    },
  }
}
