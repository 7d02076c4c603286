import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sampledKl } from '../../dist/train/divergence.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { loraPython } from '../../dist/train/lora/environment.js'
import { type LoraCore, loraCore } from '../../dist/train/lora/lora-core.js'
import { type LossSettings, lossRule } from '../../dist/train/loss-settings.js'
import { lossMetrics, newTally } from '../../dist/train/loss-tally.js'
import { asSampled, policyLoss } from '../../dist/train/losses.js'
import type { TokenRow } from '../../dist/train/row.js'
import { PYTHON_SET_UP_MS, runPython } from '../python/locked.ts'
import {
  closeSidecars,
  largestGap,
  numbers,
  someRows,
  TINY,
  takeSidecar,
  tiny,
  tinyCore,
  whyNoLora,
} from './lora/tiny.ts'

const LOSSES: readonly LossSettings[] = [
  { name: 'clip', kl: 0.1, dualClip: 1.4 },
  { name: 'is', maxWeight: 1.2 },
  { name: 'cispo', kl: 0.1, klCorrection: false },
  { name: 'reinforce' },
  { name: 'sft', kl: 0.1 },
]

function coreFor(options: Parameters<typeof tinyCore>[0] = {}): LoraCore {
  const core = tinyCore(options)
  onTestFinished(() => core[Symbol.asyncDispose]())
  return core
}

/** An adapter that has learned nothing is 0 in one of its matrices, and hides mistakes. */
async function learned(core: LoraCore, rows: readonly TokenRow[], steps = 2): Promise<LoraCore> {
  for (let step = 0; step < steps; step++) {
    await core.forwardBackward(rows, { name: 'sft' })
    await core.optimStep({ lr: 0.02 })
  }
  return core
}

const why = await whyNoLora()
let rows: readonly TokenRow[]
beforeAll(async () => {
  if (why !== undefined) return
  const core = tinyCore()
  rows = await someRows(core)
  await core[Symbol.asyncDispose]()
}, PYTHON_SET_UP_MS)
afterAll(closeSidecars)

describe.skipIf(why !== undefined)('the log-probabilities of a LoRA model', () => {
  it('are the same whether rows are packed or computed one by one, of the model and of its base', async () => {
    const [packed, plain] = [coreFor(), coreFor({ packed: false })]
    const first = (await packed.forward(rows, 'reference')).logProbs
    for (const core of [packed, plain]) await learned(core, rows)
    await plain.load(await packed.state())
    for (const of of ['current', 'reference'] as const) {
      const [one, other] = [await packed.forward(rows, of), await plain.forward(rows, of)]
      expect(largestGap(one.logProbs, other.logProbs)).toBeLessThan(1e-4)
      if (of === 'reference') expect(largestGap(one.logProbs, first)).toBe(0)
      else expect(largestGap(one.logProbs, first)).toBeGreaterThan(0.1)
    }
  })

  it('are 0 where nothing is trained, and depend on the temperature', async () => {
    const core = coreFor()
    const { logProbs } = await core.forward(rows, 'current')
    for (const [at, { mask }] of rows.entries())
      expect(Array.from(logProbs[at]!, (logProb) => (logProb === 0 ? 0 : 1))).toEqual([...mask])
    const hot = rows.map((row) => ({ ...row, temperature: 1000 }))
    const even = -Math.log(64)
    const flat = (await core.forward(hot, 'current')).logProbs.flatMap((row) => Array.from(row).filter((x) => x !== 0))
    expect(Math.max(...flat.map((logProb) => Math.abs(logProb - even)))).toBeLessThan(0.01)
  })

  it('long rows and many groups take several sequences', async () => {
    const [packed, plain] = [coreFor(), coreFor({ packed: false })]
    const random = numbers(9)
    const long = Array.from({ length: 9 }, (_, at) => {
      const prompt = 150 + 10 * Math.floor(at / 3)
      const ids = Int32Array.from({ length: prompt + 90 + at }, (_, i) =>
        i < prompt ? (i * (1 + Math.floor(at / 3))) % 64 : Math.floor(random() * 64),
      )
      const mask = Uint8Array.from(ids, (_, i) => (i < prompt ? 0 : 1))
      const numbersOf = (value: number) => new Float64Array(ids.length).fill(value)
      return {
        ...{ kind: 'tokens' as const, ids, mask, temperature: 1, version: 0, behavior: numbersOf(-4) },
        ...{ advantage: numbersOf(1), weight: numbersOf(1e-3) },
      }
    })
    const [one, other] = [await packed.forward(long, 'current'), await plain.forward(long, 'current')]
    expect(largestGap(one.logProbs, other.logProbs)).toBeLessThan(1e-4)
  })
})

describe.skipIf(why !== undefined)('rows of a group', () => {
  it('are packed only while that saves attention, and up to a length', async () => {
    const cases = [
      { group: { common: 40, own: 20, trained: 10 }, sequences: [[116, true]] },
      { group: { common: 2000, own: 60, trained: 20 }, sequences: [[2236, true]] },
      // Long rows with a short common prompt, and a common prompt beyond the limit.
      { group: { common: 500, own: 7500, trained: 60 }, sequences: Array(4).fill([7999, false]) },
      { group: { common: 9000, own: 60, trained: 20 }, sequences: Array(4).fill([9059, false]) },
    ]
    const folder = fileURLToPath(new URL('../../python', import.meta.url))
    const input = { folder, groups: cases.map(({ group }) => group) }
    const script = new URL('python/sheet_lengths.py', import.meta.url)
    const found = await runPython(await loraPython(() => {}), script, { input, timeoutMs: PYTHON_SET_UP_MS })
    expect(found).toEqual(cases.map(({ sequences }) => sequences))
  })
})

describe.skipIf(why !== undefined)('a model that looks at more than its mask says', () => {
  it('is not packed, and that is said', async () => {
    const config = { ...TINY, model_type: 'lfm2', initializer_range: 0.3, layer_types: ['conv', 'full_attention'] }
    const lines: string[] = []
    const notice = (line: string) => void lines.push(line)
    const options = { ...tiny, base: { config } }
    const core = loraCore(options, { start: takeSidecar, notice })
    onTestFinished(() => core[Symbol.asyncDispose]())
    const { logProbs } = await core.forward(rows, 'current')
    expect(lines).toEqual([expect.stringContaining("rows cannot be packed with the base model of policy 'lora'")])
    // Each row alone.
    for (const [at, row] of rows.entries())
      expect(largestGap((await core.forward([row], 'current')).logProbs, [logProbs[at]!])).toBeLessThan(1e-3)
  })
})

describe.skipIf(why !== undefined)('the gradient of a LoRA model', () => {
  it.for(LOSSES)('$name: packed, one by one and in micro-batches it is the same', async (loss) => {
    const [packed, plain] = [await learned(coreFor(), rows), coreFor({ packed: false })]
    await plain.load(await packed.state())
    const metrics = await packed.forwardBackward(rows, loss)
    let cut = {}
    for (let at = 0; at < rows.length; at += 3) cut = await plain.forwardBackward(rows.slice(at, at + 3), loss)
    for (const [name, value] of Object.entries(metrics)) {
      const other = (cut as Record<string, number>)[name]!
      expect(Math.abs(value - other), name).toBeLessThan(1e-4 * Math.max(1, Math.abs(value)))
    }
    const [one, other] = [await packed.gradient(), await plain.gradient()]
    expect(Math.max(...[...one.values()].map((part) => Math.max(...part.map(Math.abs))))).toBeGreaterThan(1e-3)
    expect(largestGap([...one.values()], [...other.values()])).toBeLessThan(1e-6)
  })

  it.for(LOSSES)(
    '$name: loss and figures are those that TypeScript computes of the log-probabilities',
    async (loss) => {
      const core = await learned(coreFor(), rows)
      const rule = lossRule(loss)
      const current = (await core.forward(rows, 'current')).logProbs
      const reference = (await core.forward(rows, 'reference')).logProbs
      const found = await core.forwardBackward(rows, loss)
      const tally = newTally()
      let total = 0
      let drift = 0
      for (const [at, row] of rows.entries()) {
        const { behavior, proximal, advantage: advantages } = row
        const weights = row.weight.map((weight, i) => weight * row.mask[i]!)
        total += policyLoss({ logProbs: current[at]!, behavior, proximal, advantages, weights }, rule, tally).loss
        for (const [i, weight] of weights.entries()) {
          if (weight === 0) continue
          const logProbs = { logProb: current[at]![i]!, behavior: behavior[i]!, proximal: proximal![i]! }
          const { value } = sampledKl({ ...asSampled(logProbs, rule), reference: reference[at]![i]! }, rule)
          drift += value
          total += rule.kl * weight * value
        }
      }
      const { samples, loss: policy, ...figures } = lossMetrics(tally)
      const expected = {
        ...figures,
        samples,
        policyLoss: policy,
        loss: total,
        ...(rule.kl && { kl: drift / samples! }),
      }
      for (const [name, value] of Object.entries(expected))
        expect(Math.abs(found[name]! - value!), name).toBeLessThan(1e-9 * Math.max(1, Math.abs(value!)))
      expect(Object.keys(found).sort()).toEqual([...Object.keys(expected), 'entropy'].sort())
    },
  )

  it('the entropy bonus makes the model less sure', async () => {
    const core = await learned(coreFor(), rows, 6)
    const idle = rows.map((row) => ({ ...row, advantage: row.advantage.map(() => 0) }))
    const before = await core.forwardBackward(idle, { name: 'reinforce', entropy: 0.1 })
    await core.optimStep({ lr: 0.01 })
    const after = await core.forwardBackward(idle, { name: 'reinforce', entropy: 0.1 })
    expect(after.entropy).toBeGreaterThan(before.entropy!)
    expect(after.loss).toBeLessThan(before.loss!)
  })

  it('is clipped, and what is not finite moves nothing', async () => {
    const core = coreFor()
    await core.forwardBackward(rows, { name: 'sft' })
    const { gradientNorm, gradientScale } = await core.optimStep({ lr: 1e-3, clipNorm: 0.01 })
    expect(gradientNorm! * gradientScale!).toBeCloseTo(0.01, 10)
    const before = await core.weights()
    const huge = rows.map((row) => ({ ...row, weight: row.weight.map(() => 1e305) }))
    await expect(core.forwardBackward(huge, { name: 'is' }).then(() => core.optimStep({ lr: 1 }))).rejects.toThrow(
      expect.objectContaining({ code: 'LEARNER_FAILED' }),
    )
    expect(await core.weights()).toEqual(before)
    const wrong = { ...rows[0]!, ids: rows[0]!.ids.map(() => 64) }
    await expect(core.forward([wrong], 'current')).rejects.toThrow('row 0 contains token id 64')
    const early = { ...rows[0]!, mask: rows[0]!.mask.map(() => 1) }
    await expect(core.forward([early], 'current')).rejects.toThrow('row 0: its first token cannot be trained on')
  })
})

describe.skipIf(why !== undefined)('a LoRA learner', () => {
  const algorithm = { loss: { name: 'clip', kl: 0.05 }, lr: 0.01, clipNorm: 1, epochs: 2, miniBatches: 2 } as const

  it('goes on in a new process where it was saved, bit for bit', { timeout: PYTHON_SET_UP_MS }, async () => {
    const learner = gradientLearner(coreFor(), algorithm)
    await learner.start({ seed: 1 })
    await learner.update({ rows })
    const state = await learner.save()
    const metrics = [await learner.update({ rows }), await learner.update({ rows })]
    const published = await learner.publish()
    // A process that has computed nothing else.
    const other = gradientLearner(loraCore(tiny), algorithm)
    onTestFinished(async () => void (await other[Symbol.asyncDispose]?.()))
    await other.start({ seed: 1, state })
    expect([await other.update({ rows }), await other.update({ rows })]).toEqual(metrics)
    expect(await other.publish()).toEqual(published)
    expect(await other.save()).toEqual(await learner.save())
  })

  it('begins with a version that was published', async () => {
    const core = await learned(coreFor(), rows)
    const weights = await core.weights()
    const next = loraCore(tiny, { from: weights, start: takeSidecar })
    onTestFinished(() => next[Symbol.asyncDispose]())
    expect(await next.weights()).toEqual(weights)
    await expect(tinyCore({ rank: 8 }).load(await core.state())).rejects.toThrow('of another base model or `rank`')
  })
})
