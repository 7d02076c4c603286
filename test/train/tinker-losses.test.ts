import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sampledKl } from '../../dist/train/divergence.js'
import type { LossSettings, TokenRow } from '../../dist/train/index.js'
import { lossRule } from '../../dist/train/loss-settings.js'
import { asSampled, sampleLoss } from '../../dist/train/losses.js'
import { type TinkerCore, tinkerCore } from '../../dist/train/tinker/tinker-core.js'
import { tinkerLearner } from '../../dist/train/tinker/tinker-learner.js'
import { refused } from '../support/refused.ts'
import { untrained } from './tinker-model.ts'
import { distance, gradientBy, logProbsOf, ourGradient, tokenRows } from './tinker-rows.ts'
import { KEY, TinkerServer } from './tinker-server.ts'
import { BASE } from './tinker-service.ts'

const EXACT = 1e-9
/** Tinker takes and tells float32: for numbers that it does not hold exactly. */
const FLOAT32 = 1e-6

let server: TinkerServer
beforeAll(async () => {
  process.env.TINKER_TEST_KEY = KEY
  server = await TinkerServer.start()
})
afterAll(() => server[Symbol.asyncDispose]())

const options = () => ({ base: BASE, rank: 4, apiKeyEnv: 'TINKER_TEST_KEY', baseURL: server.baseURL })

/** A core that has moved away from the base model, so that nothing is what it was in the beginning. */
async function movedCore(): Promise<{ core: TinkerCore; delta: Float64Array }> {
  const core = tinkerCore(options())
  await core.forwardBackward(tokenRows(8, untrained().delta), { name: 'reinforce' })
  await core.optimStep({ lr: 0.25 })
  return { core, delta: server.last.trained.delta.slice() }
}

const LOSSES: readonly LossSettings[] = [
  { name: 'is' },
  { name: 'clip' },
  { name: 'clip', clipLow: 0.3, clipHigh: 0.28 },
  { name: 'clip', clipHigh: Infinity },
  { name: 'cispo' },
  { name: 'cispo', clipLow: 0.2, clipHigh: 0.5 },
  { name: 'reinforce' },
  { name: 'sft' },
]
const titleOf = (loss: LossSettings) => JSON.stringify(loss).replaceAll('"', '').replace('null', 'Infinity')

describe('the gradient at Tinker is that of our own loss', () => {
  const check = async (loss: LossSettings, rowsOf: (delta: Float64Array) => TokenRow[], close: number) => {
    const { core, delta } = await movedCore()
    const rows = rowsOf(delta)
    const metrics = await core.forwardBackward(rows, loss)
    const { gradient, loss: value } = ourGradient(rows, loss, delta)
    expect(Math.hypot(...gradient)).toBeGreaterThan(0.01)
    expect(distance(server.last.gradient, gradient)).toBeLessThan(close)
    expect(metrics.loss).toBeCloseTo(value, 5)
    expect(metrics.reportedLoss).toBeCloseTo(value, 5)
    await core[Symbol.asyncDispose]()
    return { metrics, rows, delta }
  }

  for (const loss of LOSSES)
    it(`of ${titleOf(loss)}, where the learner is where the policy was`, () =>
      check(loss, (delta) => tokenRows(12, delta), EXACT))

  for (const loss of LOSSES)
    it(`of ${titleOf(loss)}, with a correction at its bound`, () =>
      check(loss, (delta) => tokenRows(12, delta, { stale: () => 1 }), EXACT))

  for (const loss of LOSSES)
    it(`of ${titleOf(loss)}, with any staleness`, () =>
      check(loss, (delta) => tokenRows(12, delta, { stale: (random) => random() * 2 - 1 }), FLOAT32))

  const twice: readonly LossSettings[] = [
    { name: 'clip', dualClip: 1.5, kl: 0.25 },
    { name: 'cispo', kl: 0.25, klCorrection: false },
    { name: 'sft', kl: 0.25 },
  ]
  it.each(twice)('of $name with a KL divergence, by a second pass', async (loss) => {
    const { core, delta } = await movedCore()
    const rule = lossRule(loss)
    const rows = tokenRows(12, delta, { stale: (random) => random() / 2 })
    const metrics = await core.forwardBackward(rows, loss)
    let kl = 0
    const wanted = gradientBy(rows, delta, (row, logProbs) => {
      const base = logProbsOf(row.ids, untrained().delta)
      const byLogProb = new Float64Array(logProbs.length)
      let sum = 0
      for (const [i, weight] of row.weight.entries()) {
        if (row.mask[i] === 0) continue
        const sample = { logProb: logProbs[i]!, behavior: row.behavior[i]!, proximal: row.proximal![i]! }
        const policy = sampleLoss({ ...sample, advantage: row.advantage[i]! }, rule)
        const penalty = sampledKl(asSampled({ ...sample, reference: base[i]! }, rule), rule)
        kl += penalty.value
        sum += weight * (policy.loss + 0.25 * penalty.value)
        byLogProb[i] = weight * (policy.byLogProb + 0.25 * penalty.byLogProb)
      }
      return { loss: sum, byLogProb }
    })
    expect(distance(server.last.gradient, wanted.gradient)).toBeLessThan(FLOAT32)
    expect(metrics.loss).toBeCloseTo(wanted.loss, 5)
    expect(metrics.kl).toBeCloseTo(kl / metrics.samples!, 5)
    await core[Symbol.asyncDispose]()
  })

  it('wherever a batch is cut', async () => {
    await using parted = await TinkerServer.start({
      flags: { fwdbwd_max_chunk_len: 3, fwdbwd_max_chunk_bytes_count: 200 },
    })
    const core = tinkerCore({ ...options(), baseURL: parted.baseURL })
    const rows = tokenRows(13, untrained().delta)
    await core.forwardBackward(rows.slice(0, 5), { name: 'clip' })
    const metrics = await core.forwardBackward(rows.slice(5), { name: 'clip' })
    const { gradient, loss } = ourGradient(rows, { name: 'clip' }, untrained().delta)
    expect(distance(parted.last.gradient, gradient)).toBeLessThan(EXACT)
    expect(metrics.loss).toBeCloseTo(loss, 5)
    expect(parted.count('forward_backward')).toBeGreaterThan(5)
    await core[Symbol.asyncDispose]()
  })
})

describe('what is told of an update', () => {
  it('are ratios, clipped shares and the distance from the policy that acted', async () => {
    const { core, delta } = await movedCore()
    const rows = tokenRows(12, delta)
    const metrics = await core.forwardBackward(rows, { name: 'clip' })
    let [ratio, clipped, count, kl] = [0, 0, 0, 0]
    for (const row of rows)
      for (const [i, logProb] of logProbsOf(row.ids, delta).entries()) {
        if (row.mask[i] === 0) continue
        const moved = logProb - row.behavior[i]!
        ratio += Math.exp(moved)
        kl += Math.expm1(moved) - moved
        count++
        const sample = { logProb, behavior: row.behavior[i]!, advantage: row.advantage[i]! }
        clipped += sampleLoss(sample, lossRule({ name: 'clip' })).isClipped ? 1 : 0
      }
    expect(clipped).toBeGreaterThan(0)
    expect(metrics.samples).toBe(count)
    expect(metrics.ratio).toBeCloseTo(ratio / count, 5)
    expect(metrics.clipFraction).toBeCloseTo(clipped / count, 10)
    expect(metrics.klFromBehavior).toBeCloseTo(kl / count, 5)
    expect(metrics).not.toHaveProperty('entropy')
    const norm = Math.hypot(...server.last.gradient)
    expect((await core.optimStep({ lr: 0.1, clipNorm: norm / 4 })).gradientScale).toBeCloseTo(0.25, 10)
    await core[Symbol.asyncDispose]()
  })

  it('is the loss alone, where the service keeps log-probabilities to itself', async () => {
    await using silent = await TinkerServer.start({ keepsLogProbs: true })
    const core = tinkerCore({ ...options(), baseURL: silent.baseURL })
    const rows = tokenRows(4, untrained().delta)
    const { loss } = ourGradient(rows, { name: 'is' }, untrained().delta)
    const metrics = await core.forwardBackward(rows, { name: 'is' })
    expect(metrics.reportedLoss).toBeCloseTo(loss, 9)
    expect(metrics.ratio).toBeUndefined()
    await refused(() => core.forwardBackward(rows, { name: 'is', kl: 0.1 }), 'LEARNER_FAILED', 'log-probabilities')
    await core[Symbol.asyncDispose]()
  })
})

describe('what cannot be computed at Tinker is refused', () => {
  it('before anything is sent', async () => {
    const learner = (loss: LossSettings) => () => tinkerLearner(options(), { loss, lr: 0.1 })
    await refused(learner({ name: 'clip', entropy: 0.01 }), 'CONFIG_INVALID', 'entropy')
    await refused(learner({ name: 'clip', value: 0.5 }), 'CONFIG_INVALID', 'value head')
    await refused(() => tinkerCore({ ...options(), rank: 0 }), 'CONFIG_INVALID', '`rank`')
    await refused(() => tinkerCore({ ...options(), baseURL: 'tinker.example' }), 'CONFIG_INVALID', '`baseURL`')
    await refused(() => tinkerCore({ ...options(), ttlSeconds: 60 }), 'CONFIG_INVALID', '`ttlSeconds`')
  })

  it('row by row', async () => {
    const core = tinkerCore(options())
    const [row] = tokenRows(1, untrained().delta)
    const wrong = (changes: Partial<TokenRow>, ...words: string[]) =>
      refused(() => core.forwardBackward([row!, { ...row!, ...changes }], { name: 'is' }), 'ROW_INVALID', ...words)
    await wrong({ temperature: 0.7 }, 'row 1', 'temperature is 0.7')
    await wrong({ mask: row!.mask.map(() => 1) }, 'first token')
    await wrong({ weight: row!.weight.map(() => -1) }, 'negative')
    await wrong({ ids: row!.ids.subarray(0, 1) }, '1 tokens')
    const action = { kind: 'action', observation: '', candidates: [0], action: 0, index: 0 } as const
    const given = { ...action, behavior: 0, advantage: 1, weight: 1, version: 0 }
    await refused(() => core.forwardBackward([given], { name: 'is' }), 'ROW_INVALID', 'can only be trained on tokens')
  })
})
