import { describe, expect, test } from 'vitest'
import { seeded } from '../../dist/random.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import type { LossSettings } from '../../dist/train/loss-settings.js'
import { neuralCore } from '../../dist/train/neural/neural-core.js'
import { type NeuralPolicy, neuralPolicy } from '../../dist/train/neural/neural-policy.js'
import { countWeights, networkSizes } from '../../dist/train/neural/settings.js'
import { packWeights } from '../../dist/train/neural/weights.js'
import { ACTIONS, neuralRows } from './neural-rows.ts'

const listed = neuralPolicy({ inputs: 2, actions: ACTIONS, hidden: [5, 4] })
/** Texts and objects as two numbers. */
const numbersOf = (candidate: unknown) => [candidate === 'left' ? -1 : 1, typeof candidate === 'object' ? 1 : 0]
const scoring = neuralPolicy({
  inputs: 2,
  candidates: { size: 2, of: (_: unknown, candidate: unknown) => numbersOf(candidate) },
  hidden: [5],
})

const someWeights = ({ settings }: NeuralPolicy, seed: number) => {
  const random = seeded(seed)
  const count = networkSizes(settings).reduce((sum, sizes) => sum + countWeights(sizes), 0)
  return Float64Array.from({ length: count }, () => (random() - 0.5) * 2)
}

describe('the gradient of a neural policy', () => {
  const losses: LossSettings[] = [
    { name: 'reinforce' },
    { name: 'is' },
    { name: 'clip', clipLow: 0.9, clipHigh: 9 },
    { name: 'reinforce', entropy: 0.3 },
    { name: 'reinforce', kl: 0.3 },
    { name: 'reinforce', value: 0.5 },
    { name: 'is', entropy: 0.1, kl: 0.2, value: 0.3 },
  ]
  describe.each([
    ['with a list of actions', listed],
    ['that scores candidates', scoring],
  ])('%s', (_, policy) => {
    test.each(losses)('is the slope of the loss: %j', async (loss) => {
      const rows = neuralRows(12)
      const reference = packWeights(policy.settings, someWeights(policy, 2))
      const run = async (weights: Float64Array) => {
        const core = await neuralCore(policy, { from: packWeights(policy.settings, weights), reference })
        const { loss: sum } = await core.forwardBackward(rows, loss)
        return { sum: sum!, core }
      }
      const at = someWeights(policy, 1)
      const gradient = (await run(at)).core.gradient()
      expect(gradient.filter((value) => value !== 0).length).toBeGreaterThan(20)
      for (const [i, weight] of at.entries()) {
        const [up, down] = [await run(at.with(i, weight + 1e-5)), await run(at.with(i, weight - 1e-5))]
        const slope = (up.sum - down.sum) / 2e-5
        // The loss is float64, the way back through the network float32.
        expect(Math.abs(gradient[i]! - slope), `weight ${i}`).toBeLessThan(2e-6)
      }
    })
  })

  test('of more rows than are computed at a time is the sum of the parts', async () => {
    const rows = neuralRows(2500)
    const gradientOf = async (some: typeof rows) => {
      const core = await neuralCore(listed)
      await core.forwardBackward(some, { name: 'is', value: 1 })
      return core.gradient()
    }
    const whole = await gradientOf(rows)
    const parts = await Promise.all([0, 700, 1400, 2100].map((from) => gradientOf(rows.slice(from, from + 700))))
    for (const [i, value] of whole.entries())
      expect(value).toBeCloseTo(
        parts.reduce((sum, part) => sum + part[i]!, 0),
        6,
      )
  })

  test('of a row without weight is nothing', async () => {
    const core = await neuralCore(listed)
    await core.forwardBackward(
      neuralRows(5).map((row) => ({ ...row, weight: 0 })),
      { name: 'clip' },
    )
    expect(core.gradient().every((value) => value === 0)).toBe(true)
  })
})

describe('a learner of a neural policy', () => {
  const after = async (microBatch: number, epochs = 1, miniBatches = 1) => {
    const learner = gradientLearner(await neuralCore(listed), {
      loss: { name: 'clip', entropy: 0.01, kl: 0.01, value: 0.5 },
      ...{ lr: 0.05, clipNorm: 0.1, epochs, miniBatches, microBatch, proximal: 'learner' },
    })
    await learner.start({ seed: 7 })
    const metrics = []
    for (let i = 0; i < 2; i++) metrics.push(await learner.update({ rows: neuralRows(1500, i) }))
    return { metrics, state: await learner.save() }
  }

  test('comes to the same bits, however the batch is cut', { timeout: 60_000 }, async () => {
    const whole = await after(4096)
    for (const microBatch of [7, 499, 1024]) expect(await after(microBatch)).toEqual(whole)
    const many = await after(4096, 2, 4)
    expect(await after(101, 2, 4)).toEqual(many)
    expect(many.state).not.toEqual(whole.state)
  })

  test('begins with a ratio of exactly 1 to the policy that acted', async () => {
    const core = await neuralCore(listed, { from: packWeights(listed.settings, someWeights(listed, 3)) })
    const { act } = listed.openBytes(core.weights())
    const rows = neuralRows(200).map((row, i) => {
      const { index, logProb } = act({ ...row, mode: 'sample', random: seeded(i) })
      return { ...row, index: index!, behavior: logProb! }
    })
    const { ratio, largestRatio, klFromBehavior } = await core.forwardBackward(rows, { name: 'clip' })
    expect({ ratio, largestRatio, klFromBehavior }).toEqual({ ratio: 1, largestRatio: 1, klFromBehavior: 0 })
  })

  test('an update that would end in numbers that are not finite is undone', async () => {
    const learner = gradientLearner(await neuralCore(listed), { loss: { name: 'clip' }, lr: 0.1 })
    const first = await learner.start({ seed: 1 })
    const rows = neuralRows(10).map((row) => ({ ...row, weight: 1e300 }))
    await expect(learner.update({ rows })).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: /version 0 was kept/,
    })
    expect(await learner.publish()).toEqual(first)
    await learner.update({ rows: neuralRows(10) })
    expect((await learner.publish()).ref.version).toBe(1)
  })

  test('an action that the policy does not have is refused, and nothing is learned', async () => {
    const learner = gradientLearner(await neuralCore(listed), { loss: { name: 'clip' }, lr: 0.1 })
    const first = await learner.start({ seed: 1 })
    const rows = neuralRows(3).map((row) => ({ ...row, candidates: ['left', 'up'], index: 0 }))
    await expect(learner.update({ rows })).rejects.toMatchObject({ message: /"up" is not one of the 3 `actions`/ })
    expect(await learner.publish()).toEqual(first)
  })
})
