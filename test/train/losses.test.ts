import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { logProbByLogit, logSoftmax } from '../../src/train/divergence.ts'
import { LOSS_NAMES, type LossSettings, lossRule } from '../../src/train/loss-settings.ts'
import { lossMetrics, newTally } from '../../src/train/loss-tally.ts'
import { policyLoss, type Sample, sampleLoss } from '../../src/train/losses.ts'
import { expectGradient, expectNear, expectSlope, isSmooth, logProbs, numbers, sumOf } from './finite-differences.ts'

/** Samples with the given ratios to the policy that acted. */
const withRatios = (ratios: readonly number[], advantages: readonly number[]): readonly Sample[] =>
  ratios.map((ratio, i) => ({ logProb: Math.log(ratio) - 3, behavior: -3, advantage: advantages[i]! }))

const lossesOf = (samples: readonly Sample[], settings: LossSettings) =>
  samples.map((sample) => sampleLoss(sample, lossRule(settings)))

/** `sft` looks at no advantage, and at nobody who acted. */
const POLICY_LOSSES = LOSS_NAMES.filter((name) => name !== 'sft')

const sample = fc.record({ logProb: logProbs, behavior: logProbs, proximal: logProbs, advantage: numbers(5) })
const logits = fc.array(numbers(2), { minLength: 2, maxLength: 6 })

describe('the clipped loss', () => {
  const ppo = withRatios([0.5, 1, 1.5], [1, -1, 2])

  it('has the reference values', () => {
    const losses = lossesOf(ppo, { name: 'clip' })
    expectNear(
      losses.map(({ loss }) => loss),
      [-0.5, 1, -2.4],
    )
    expectNear([sumOf(losses.map(({ loss }) => loss)) / 3], [-1.9 / 3])
    expectNear(
      losses.map(({ byLogProb }) => byLogProb),
      [-0.5, 1, 0],
    )
    expect(losses.map(({ isClipped }) => isClipped)).toEqual([false, false, true])
  })

  it('has the reference values with a dual clip', () => {
    const losses = lossesOf(withRatios([0.5, 1, 10], [1, -1, -4]), { name: 'clip', dualClip: 3 })
    expectNear(
      losses.map(({ loss }) => loss),
      [-0.5, 1, 12],
    )
    expectNear(
      losses.map(({ byLogProb }) => byLogProb),
      [-0.5, 1, 0],
    )
  })

  it('has a lower and an upper bound of its own', () => {
    const samples = withRatios([0.5, 0.8, 1.25, 1.5], [-1, -1, 1, 1])
    const losses = lossesOf(samples, { name: 'clip', clipLow: 0.3, clipHigh: 0.28 })
    expectNear(
      losses.map(({ loss }) => loss),
      [0.7, 0.8, -1.25, -1.28],
    )
    expect(losses.map(({ isClipped }) => isClipped)).toEqual([true, false, false, true])
  })

  it('does not call samples without an advantage clipped', () => {
    const losses = lossesOf(withRatios([0.1, 1, 10], [0, 0, 0]), { name: 'clip', dualClip: 3 })
    expect(losses.map(({ isClipped }) => isClipped)).toEqual([false, false, false])
  })

  it('is the larger of the clipped and the plain loss', () => {
    fc.assert(
      fc.property(sample, (sample) => {
        const { loss, ratio, correction } = sampleLoss(sample, lossRule({ name: 'clip' }))
        const clipped = Math.min(Math.max(ratio, 0.8), 1.2)
        expectNear([loss], [-correction * Math.min(ratio * sample.advantage, clipped * sample.advantage)])
      }),
    )
  })
})

describe.each<LossSettings>([
  { name: 'clip' },
  { name: 'clip', clipLow: 0.3, clipHigh: 0.5, dualClip: 2, maxWeight: 1.5 },
  { name: 'is' },
  { name: 'is', maxWeight: 1 },
])('the derivative of %o', (settings) => {
  it('is the slope of the loss', () => {
    const rule = lossRule(settings)
    fc.assert(
      fc.property(sample, (sample) => {
        const { byLogProb } = sampleLoss(sample, rule)
        const kinks = [rule.minRatio, rule.maxRatio, rule.dualClip].map((ratio) => Math.log(ratio) + sample.proximal)
        fc.pre(isSmooth(sample.logProb, kinks))
        expectSlope((logProb) => sampleLoss({ ...sample, logProb }, rule).loss, sample.logProb, byLogProb)
      }),
      { numRuns: 500 },
    )
  })
})

describe.each<LossSettings>([
  { name: 'cispo' },
  { name: 'cispo', clipLow: 0.2, clipHigh: 0.2, maxWeight: 1.5 },
  { name: 'reinforce' },
  { name: 'reinforce', maxWeight: 1.5 },
])('the derivative of %o', (settings) => {
  it('is the slope of log p times a frozen weight', () => {
    const { name, clipLow = 1, clipHigh = 4, maxWeight = 2 } = settings
    fc.assert(
      fc.property(sample, (sample) => {
        const { logProb, behavior, proximal, advantage } = sample
        const { loss, byLogProb } = sampleLoss(sample, lossRule(settings))
        const ratio = Math.exp(logProb - proximal)
        const clipped = name === 'cispo' ? Math.min(Math.max(ratio, 1 - clipLow), 1 + clipHigh) : 1
        const frozen = clipped * Math.min(Math.exp(proximal - behavior), maxWeight)
        expectSlope((logProb) => -frozen * advantage * logProb, logProb, byLogProb)
        expectNear([loss], [-frozen * advantage * logProb])
      }),
    )
  })
})

describe('every loss', () => {
  it('has the gradient of REINFORCE on the policy that acted', () => {
    fc.assert(
      fc.property(fc.constantFrom(...POLICY_LOSSES), logProbs, numbers(5), (name, logProb, advantage) => {
        expectNear([sampleLoss({ logProb, behavior: logProb, advantage }, lossRule({ name })).byLogProb], [-advantage])
      }),
    )
  })

  it('takes the policy that acted for the proximal one, if there is no other', () => {
    fc.assert(
      fc.property(fc.constantFrom(...POLICY_LOSSES), sample, (name, { proximal: _, ...sample }) => {
        const same = sampleLoss({ ...sample, proximal: sample.behavior }, lossRule({ name }))
        expect(sampleLoss(sample, lossRule({ name }))).toEqual(same)
        expect(same.correction).toBe(1)
      }),
    )
  })

  it('weighs stale samples by proximal / behavior, up to a cap', () => {
    const at = (staleness: number) => ({ logProb: -2, proximal: -2, behavior: -2 - Math.log(staleness), advantage: 1 })
    for (const name of POLICY_LOSSES) {
      const [rare, capped] = lossesOf([at(0.5), at(8)], { name })
      expectNear([rare!.byLogProb, capped!.byLogProb], [-0.5, -2])
      expect([rare!.isCapped, capped!.isCapped]).toEqual([false, true])
    }
  })

  it('stays finite when the proximal policy is far from the others', () => {
    for (const name of LOSS_NAMES)
      for (const proximal of [-800, -1e-9]) {
        const { loss, byLogProb } = sampleLoss(
          { logProb: -1, behavior: -30, proximal, advantage: -1 },
          lossRule({ name }),
        )
        expect(Number.isFinite(loss) && Number.isFinite(byLogProb), `${name} ${proximal}`).toBe(true)
      }
  })

  it('refuses settings that are wrong or have no effect', () => {
    const refused = (settings: object) => expect(() => lossRule(settings as LossSettings))
    refused({ name: 'ppo' }).toThrow('unknown loss "ppo"; use one of clip, is, cispo, reinforce, sft')
    refused({ name: 'clip', clipLow: 2 }).toThrow('`clipLow` must be a number from 0 to 1; it is 2')
    refused({ name: 'clip', clipHigh: -1 }).toThrow('`clipHigh` must be a number of at least 0; it is -1')
    refused({ name: 'clip', dualClip: 1 }).toThrow('`dualClip` must be a number above 1, such as 3; it is 1')
    refused({ name: 'clip', maxWeight: 0.5 }).toThrow('`maxWeight` must be a number of at least 1; it is 0.5')
    refused({ name: 'clip', entropy: Number.NaN }).toThrow('`entropy` must be a finite number; it is NaN')
    refused({ name: 'is', clipHigh: 0.2 }).toThrow("`clipHigh` has no effect on the loss 'is': leave it out")
    refused({ name: 'cispo', dualClip: 3 }).toThrow("`dualClip` has no effect on the loss 'cispo': leave it out")
  })
})

describe('the loss `sft`', () => {
  it('is -log p, whatever the advantage and the policy that acted', () => {
    const rule = lossRule({ name: 'sft' })
    fc.assert(
      fc.property(sample, (sample) => {
        const found = sampleLoss(sample, rule)
        expect(found).toMatchObject({ loss: -sample.logProb, byLogProb: -1, ratio: 1, correction: 1, isCapped: false })
        expectSlope((logProb) => sampleLoss({ ...sample, logProb }, rule).loss, sample.logProb, found.byLogProb)
      }),
    )
  })

  it('has figures of samples that the policy drew itself', () => {
    const tally = newTally()
    const samples = { logProbs: [-1, -3], behavior: [-900, 0], advantages: [0, -7], weights: [0.5, 0.5] }
    const { loss, byLogProb } = policyLoss(samples, lossRule({ name: 'sft' }), tally)
    expect({ loss, byLogProb: [...byLogProb] }).toEqual({ loss: 2, byLogProb: [-0.5, -0.5] })
    expect(lossMetrics(tally)).toMatchObject({ ratio: 1, effectiveSampleShare: 1, klFromBehavior: 0, cappedShare: 0 })
  })

  it('refuses what has no effect on it', () => {
    expect(() => lossRule({ name: 'sft', maxWeight: 3 })).toThrow("`maxWeight` has no effect on the loss 'sft'")
  })
})

describe('the loss `is`', () => {
  it('has the true gradient in expectation, for samples of any policy and through any proximal one', () => {
    fc.assert(
      fc.property(logits, fc.infiniteStream(numbers(2)), (logits, more) => {
        const other = () => logSoftmax(logits.map(() => more.next().value))
        const [behavior, proximal, advantages] = [other(), other(), other()]
        const current = logSoftmax(logits)
        const rule = lossRule({ name: 'is', maxWeight: Number.MAX_VALUE })
        const expected = new Float64Array(logits.length)
        for (let i = 0; i < logits.length; i++) {
          const sample = {
            logProb: current[i]!,
            behavior: behavior[i]!,
            proximal: proximal[i]!,
            advantage: advantages[i]!,
          }
          const { byLogProb } = sampleLoss(sample, rule)
          logProbByLogit(current, i).forEach((slope, j) => {
            expected[j]! += Math.exp(behavior[i]!) * byLogProb * slope
          })
        }
        const risk = (x: Float64Array) => -sumOf(logSoftmax(x).map((logP, i) => Math.exp(logP) * advantages[i]!))
        expectGradient(risk, logits, expected)
      }),
    )
  })
})

describe('the loss of a batch', () => {
  const batch = fc.array(fc.tuple(sample, fc.double({ min: 0, max: 2, noNaN: true })), { maxLength: 20 })

  it('is the weighted sum, with the derivative by each log-probability', () => {
    fc.assert(
      fc.property(fc.constantFrom(...LOSS_NAMES), batch, (name, batch) => {
        const rule = lossRule({ name })
        const { loss, byLogProb } = policyLoss(samplesOf(batch), rule)
        expectNear([loss], [sumOf(batch.map(([sample, weight]) => weight * sampleLoss(sample, rule).loss))])
        expectNear(
          byLogProb,
          batch.map(([sample, weight]) => weight * sampleLoss(sample, rule).byLogProb),
        )
      }),
    )
  })

  it('does not look at tokens without a weight', () => {
    const samples = {
      behavior: [-1, Number.NaN],
      logProbs: [-1, Number.NaN],
      advantages: [2, Number.NaN],
      weights: [0.5, 0],
    }
    const { loss, byLogProb } = policyLoss(samples, lossRule({ name: 'clip' }))
    expect({ loss, byLogProb: [...byLogProb] }).toEqual({ loss: -1, byLogProb: [-1, 0] })
  })

  it('refuses arrays of different lengths', () => {
    const samples = { behavior: [-1, -1], logProbs: [-1, -1], advantages: [1, 1], weights: [1, 1] }
    const rule = lossRule({ name: 'is' })
    for (const key of ['behavior', 'advantages', 'weights', 'proximal'])
      expect(() => policyLoss({ ...samples, [key]: [1] }, rule)).toThrow(`${key}: the length must be 2; it is 1`)
  })
})

const samplesOf = (batch: readonly (readonly [Sample, number])[]) => ({
  logProbs: batch.map(([{ logProb }]) => logProb),
  behavior: batch.map(([{ behavior }]) => behavior),
  proximal: batch.map(([{ proximal, behavior }]) => proximal ?? behavior),
  advantages: batch.map(([{ advantage }]) => advantage),
  weights: batch.map(([, weight]) => weight),
})
