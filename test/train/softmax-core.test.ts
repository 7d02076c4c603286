import { describe, expect, test } from 'vitest'
import { seeded } from '../../dist/random.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import type { LossSettings } from '../../dist/train/loss-settings.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { packWeights } from '../../dist/train/softmax/weights.js'
import { someRows } from './some-rows.ts'

const small = softmaxPolicy({ bits: 5, value: true, temperature: 0.7 })
const someWeights = (seed: number) => {
  const random = seeded(seed)
  return Float64Array.from({ length: 64 }, () => random() - 0.5)
}
const bytes = (weights: Float64Array) => packWeights(small.settings, weights)

describe('the gradient of a softmax policy', () => {
  const losses: LossSettings[] = [
    { name: 'reinforce' },
    { name: 'is' },
    { name: 'clip', clipLow: 0.4, clipHigh: 0.4 },
    { name: 'reinforce', entropy: 0.3 },
    { name: 'reinforce', kl: 0.3 },
    { name: 'reinforce', value: 0.5 },
    { name: 'is', entropy: 0.1, kl: 0.2, value: 0.3 },
  ]
  test.each(losses)('is the slope of the loss: %j', async (loss) => {
    const rows = someRows(12)
    const reference = bytes(someWeights(2))
    const run = async (weights: Float64Array) => {
      const core = softmaxCore(small, { from: bytes(weights), reference })
      const { loss: sum } = await core.forwardBackward(rows, loss)
      return { sum: sum!, gradient: core.gradient() }
    }
    const at = someWeights(1)
    const { gradient } = await run(at)
    expect(gradient.filter((value) => value !== 0).length).toBeGreaterThan(20)
    for (const [i, weight] of at.entries()) {
      const [up, down] = [await run(at.with(i, weight + 1e-5)), await run(at.with(i, weight - 1e-5))]
      const slope = (up.sum - down.sum) / 2e-5
      expect(Math.abs(gradient[i]! - slope), `weight ${i}`).toBeLessThan(1e-6)
    }
  })

  test('of a row without weight is nothing', async () => {
    const core = softmaxCore(small)
    await core.forwardBackward(
      someRows(5).map((row) => ({ ...row, weight: 0 })),
      { name: 'clip' },
    )
    expect(core.gradient().every((value) => value === 0)).toBe(true)
  })
})

describe('a learner of a softmax policy', () => {
  const policy = softmaxPolicy({ bits: 9, value: true })
  const after = async (microBatch: number, epochs = 1, miniBatches = 1) => {
    const learner = gradientLearner(softmaxCore(policy), {
      loss: { name: 'clip', entropy: 0.01, kl: 0.01, value: 0.5 },
      ...{ lr: 0.05, clipNorm: 0.1, epochs, miniBatches, microBatch, proximal: 'learner' },
    })
    await learner.start({ seed: 7 })
    const metrics = []
    for (let i = 0; i < 3; i++) metrics.push(await learner.update({ rows: someRows(50, i) }))
    return { metrics, state: await learner.save() }
  }

  test('comes to the same bits, however the batch is cut', async () => {
    const whole = await after(50)
    for (const microBatch of [1, 7, 49, 4096]) expect(await after(microBatch)).toEqual(whole)
    const many = await after(50, 2, 4)
    for (const microBatch of [1, 5]) expect(await after(microBatch, 2, 4)).toEqual(many)
    expect(many.state).not.toEqual(whole.state)
  })

  test('takes the first step of Adam by the learning rate, whatever the gradient is', async () => {
    const bandit = softmaxPolicy({ bits: 8, features: (_: unknown, candidate: string) => [candidate] })
    const learner = gradientLearner(softmaxCore(bandit), { loss: { name: 'reinforce' }, lr: 0.25 })
    await learner.start({ seed: 1 })
    const metrics = await learner.update({
      rows: [{ ...someRows(1)[0]!, candidates: ['a', 'b'], index: 1, advantage: 1 }],
    })
    // Of -log p by both scores: (1/2, -1/2).
    expect(metrics.gradientNorm).toBeCloseTo(Math.SQRT1_2, 12)
    const { act } = bandit.openBytes((await learner.publish()).bytes)
    const { logProb } = act({ observation: 0, candidates: ['a', 'b'], mode: 'sample', random: () => 0.99 })
    expect(logProb).toBeCloseTo(-Math.log(1 + Math.exp(-0.5)), 7)
  })

  test('an update that would end in numbers that are not finite is undone', async () => {
    const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.1 })
    const first = await learner.start({ seed: 1 })
    const rows = someRows(10).map((row) => ({ ...row, advantage: 1e308 * Math.sign(row.advantage), weight: 1e10 }))
    await expect(learner.update({ rows })).rejects.toMatchObject({ code: 'LEARNER_FAILED', message: /version 0 stays/ })
    expect(await learner.publish()).toEqual(first)
    await learner.update({ rows: someRows(10) })
    expect((await learner.publish()).ref.version).toBe(1)
  })

  test.each([
    [{ lr: 0 }, /`lr`/],
    [{ lr: Number.NaN }, /`lr`/],
    [{ clipNorm: 0 }, /`clipNorm`/],
    [{ epochs: 0.5 }, /`epochs`/],
    [{ microBatch: 0 }, /`microBatch`/],
    [{ proximal: 'other' as never }, /`proximal`/],
    [{ loss: { name: 'ppo' as never } }, /ppo/],
  ])('refuses an algorithm that cannot be: %j', (wrong, message) => {
    expect(() => gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.1, ...wrong })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }),
    )
  })

  test('refuses rows that it cannot learn from', async () => {
    const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'clip', value: 1 }, lr: 0.1 })
    await expect(learner.update({ rows: [] })).rejects.toMatchObject({ code: 'LEARNER_INVALID', message: /start/ })
    await learner.start({ seed: 1 })
    const { return: _, ...withoutReturn } = someRows(1)[0]!
    const zeros = new Float64Array(2)
    const tokens = {
      ids: new Int32Array(2),
      mask: new Uint8Array(2),
      behavior: zeros,
      advantage: zeros,
      weight: zeros,
    }
    for (const row of [withoutReturn, { kind: 'tokens' as const, ...tokens, temperature: 1, version: 0 }])
      await expect(learner.update({ rows: [row] })).rejects.toMatchObject({ code: 'ROW_INVALID' })
  })
})
