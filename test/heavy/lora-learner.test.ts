import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { testLearner } from '../../dist/testing/learner.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { loraCore } from '../../dist/train/lora/lora-core.js'
import { kitLearner, openKitPolicy } from './lora/kit-policy.ts'
import { closeSidecars, takeSidecar, whyNoLora } from './lora/tiny.ts'
import { collect, counting } from './lora/token-task.ts'

const why = await whyNoLora()
afterAll(closeSidecars)

const UPDATES = 25
const GROUP = 8

describe.skipIf(why !== undefined)('a LoRA learner', () => {
  it('teaches a random model to count', async () => {
    const core = loraCore(counting, { start: takeSidecar })
    const learner = gradientLearner(core, { loss: { name: 'clip' }, lr: 0.01, clipNorm: 1 })
    onTestFinished(async () => void (await learner[Symbol.asyncDispose]?.()))
    await learner.start({ seed: 1 })
    const curve: number[] = []
    for (let update = 0; update < UPDATES; update++) {
      const { rows, reward } = await collect(core, update, GROUP)
      curve.push(reward)
      const metrics = await learner.update({ rows })
      // The core that acts is the one that learns: nothing has moved when the update begins.
      expect(metrics.klFromBehavior).toBeLessThan(1e-8)
      expect(metrics.largestRatio).toBeCloseTo(1, 4)
    }
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
    expect(mean(curve.slice(0, 3))).toBeLessThan(0.3)
    expect(mean(curve.slice(-3)), curve.map((reward) => reward.toFixed(2)).join(' ')).toBeGreaterThan(0.6)
  })
})

if (why === undefined) testLearner('of LoRA', { learner: kitLearner, open: openKitPolicy })
