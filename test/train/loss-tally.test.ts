import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exactKl, logSoftmax } from '../../src/train/divergence.ts'
import { lossRule } from '../../src/train/loss-settings.ts'
import { lossMetrics, newTally } from '../../src/train/loss-tally.ts'
import { policyLoss, type Samples } from '../../src/train/losses.ts'
import { expectNear, logProbs } from './finite-differences.ts'

function metricsOf(samples: Samples, settings: Parameters<typeof lossRule>[0] = { name: 'clip' }) {
  const tally = newTally()
  policyLoss(samples, lossRule(settings), tally)
  return lossMetrics(tally)
}

describe('figures of the policy loss', () => {
  it('tell how far the update went, and how stale its samples were', () => {
    const log = Math.log
    const metrics = metricsOf({
      // p / proximal 1, 1.5, .5, 1; proximal / behavior 1, 1, 1, 4.
      behavior: [log(0.2), log(0.2), log(0.4), log(0.1)],
      proximal: [log(0.2), log(0.2), log(0.4), log(0.4)],
      logProbs: [log(0.2), log(0.3), log(0.2), log(0.4)],
      advantages: [1, 1, -1, 1],
      weights: [0.25, 0.25, 0.25, 0.25],
    })
    const importance = [1, 1.5, 0.5, 4]
    const kl = importance.map((ratio) => ratio - 1 - log(ratio)).reduce((a, b) => a + b) / 4
    expect(Object.keys(metrics)).toEqual([
      'samples',
      'loss',
      'ratio',
      'largestRatio',
      'clipFraction',
      'cappedShare',
      'largestWeight',
      'effectiveSampleShare',
      'klFromBehavior',
    ])
    expectNear(Object.values(metrics), [4, (-1 - 1.2 + 0.8 - 2) / 4, 1, 1.5, 0.5, 0.25, 4, 49 / 19.5 / 4, kl])
  })

  it('count on-policy samples in full', () => {
    fc.assert(
      fc.property(fc.array(logProbs, { minLength: 1 }), (behavior) => {
        const ones = behavior.map(() => 1)
        const metrics = metricsOf({ logProbs: behavior, behavior, advantages: ones, weights: ones })
        expectNear([metrics.effectiveSampleShare!], [1])
        expect(metrics).toMatchObject({ ratio: 1, clipFraction: 0, cappedShare: 0, klFromBehavior: 0 })
      }),
    )
  })

  it('are the same to the last bit wherever the update is cut into micro-batches', () => {
    const sample = fc.tuple(logProbs, logProbs, logProbs, logProbs, fc.constantFrom(0, 0.1, 0.7))
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 30 }), fc.nat(30), (samples, cut) => {
        const whole = newTally()
        policyLoss(samplesOf(samples), lossRule({ name: 'clip' }), whole)
        const parts = newTally()
        for (const part of [samples.slice(0, cut), samples.slice(cut)])
          policyLoss(samplesOf(part), lossRule({ name: 'clip' }), parts)
        expect(parts).toEqual(whole)
      }),
    )
  })

  it('have no means without samples', () => {
    expect(metricsOf({ logProbs: [-1], behavior: [-2], advantages: [1], weights: [0] })).toEqual({
      samples: 0,
      loss: 0,
    })
  })

  it('estimate the divergence from the policy that acted', () => {
    const behavior = logSoftmax([1, 0, -1])
    const current = logSoftmax([0.5, 0.2, -0.3])
    // So many samples of each candidate as it is probable.
    const counts = behavior.map((logP) => Math.round(Math.exp(logP) * 1e5))
    const drawn = [...counts].flatMap((count, i) => Array<number>(count).fill(i))
    const ones = drawn.map(() => 1)
    const { klFromBehavior } = metricsOf({
      logProbs: drawn.map((i) => current[i]!),
      behavior: drawn.map((i) => behavior[i]!),
      advantages: ones,
      weights: ones,
    })
    expectNear([klFromBehavior!], [exactKl(behavior, current).value], 1e-5)
  })
})

const samplesOf = (samples: readonly (readonly [number, number, number, number, number])[]): Samples => ({
  logProbs: samples.map(([p]) => p),
  behavior: samples.map(([, b]) => b),
  proximal: samples.map(([, , x]) => x),
  advantages: samples.map(([, , , a]) => a + 2),
  weights: samples.map(([, , , , w]) => w),
})
