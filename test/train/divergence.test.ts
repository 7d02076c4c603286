import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entropy, exactKl, logProbByLogit, logSoftmax, sampledKl } from '../../src/train/divergence.ts'
import { expectGradient, expectNear, expectSlope, logProbs, numbers, sumOf } from './finite-differences.ts'

const logits = fc.array(numbers(3), { minLength: 1, maxLength: 8 })
const policies = fc
  .integer({ min: 2, max: 6 })
  .chain((length) =>
    fc.tuple(...Array.from({ length: 4 }, () => fc.array(numbers(2), { minLength: length, maxLength: length }))),
  )

describe('log-probabilities of candidates', () => {
  it('sum to 1, also with large logits', () => {
    fc.assert(
      fc.property(fc.array(numbers(1e4), { minLength: 1 }), (logits) =>
        expectNear([sumOf(logSoftmax(logits).map(Math.exp))], [1], 1e-9),
      ),
    )
  })

  it('have a derivative by each logit', () => {
    fc.assert(
      fc.property(logits, fc.nat(), (logits, pick) => {
        const index = pick % logits.length
        expectGradient((x) => logSoftmax(x)[index]!, logits, logProbByLogit(logSoftmax(logits), index))
      }),
    )
  })
})

describe('the entropy over candidates', () => {
  it('is that of known distributions', () => {
    expectNear([entropy(logSoftmax([5, 5, 5, 5])).value], [Math.log(4)])
    expect(entropy(logSoftmax([3])).value).toBe(0)
    expectNear([entropy([0.5, 0.25, 0.25].map(Math.log)).value], [1.5 * Math.LN2])
  })

  it('has a derivative by each logit', () => {
    fc.assert(
      fc.property(logits, (logits) => {
        expectGradient((x) => entropy(logSoftmax(x)).value, logits, entropy(logSoftmax(logits)).byLogit)
      }),
    )
  })

  it('passes over candidates that are excluded', () => {
    const { value, byLogit } = entropy(logSoftmax([0, Number.NEGATIVE_INFINITY, 0]))
    expectNear([value, ...byLogit], [Math.LN2, 0, 0, 0])
  })
})

describe('the exact KL over candidates', () => {
  it('is that of known distributions', () => {
    const kl = exactKl([0.5, 0.5].map(Math.log), [0.25, 0.75].map(Math.log))
    expectNear([kl.value], [0.5 * Math.log(2) + 0.5 * Math.log(2 / 3)])
  })

  it('is 0 between equal policies, and never negative', () => {
    fc.assert(
      fc.property(policies, ([a, b]) => {
        expect(exactKl(logSoftmax(a!), logSoftmax(a!)).value).toBe(0)
        expect(exactKl(logSoftmax(a!), logSoftmax(b!)).value).toBeGreaterThan(-1e-12)
      }),
    )
  })

  it('has a derivative by each logit', () => {
    fc.assert(
      fc.property(policies, ([logits, other]) => {
        const reference = logSoftmax(other!)
        const { byLogit } = exactKl(logSoftmax(logits!), reference)
        expectGradient((x) => exactKl(logSoftmax(x), reference).value, logits!, byLogit)
      }),
    )
  })

  it('passes over candidates that both exclude, and is infinite if only the reference does', () => {
    const none = Number.NEGATIVE_INFINITY
    const { value, byLogit } = exactKl(logSoftmax([0, 0, none]), logSoftmax([0, 0, none]))
    expectNear([value, ...byLogit], [0, 0, 0, 0])
    expect(exactKl(logSoftmax([0, 0]), logSoftmax([0, none])).value).toBe(Number.POSITIVE_INFINITY)
  })

  it('refuses a reference with other candidates', () => {
    expect(() => exactKl([0], [0, 0])).toThrow('log-probabilities of the reference: the length must be 1; it is 2')
  })
})

describe('the KL from samples', () => {
  it('is k3 on the policy itself', () => {
    for (const d of [-1, 0, 0.5]) {
      const { value, byLogProb } = sampledKl({ logProb: -2, behavior: -2, reference: -2 - d })
      expectNear([value, byLogProb], [Math.exp(-d) - 1 + d, d])
    }
  })

  it('has a derivative by the log-probability', () => {
    const sample = fc.record({ logProb: logProbs, behavior: logProbs, proximal: logProbs, reference: logProbs })
    fc.assert(
      fc.property(sample, fc.constantFrom(1, 2, Number.POSITIVE_INFINITY), (sample, maxWeight) => {
        for (const klCorrection of [true, false]) {
          const { byLogProb } = sampledKl(sample, { maxWeight, klCorrection })
          const value = (logProb: number) => sampledKl({ ...sample, logProb }, { maxWeight, klCorrection }).value
          expectSlope(value, sample.logProb, byLogProb)
        }
      }),
    )
  })

  it('without the correction, does not look at the policy that acted', () => {
    for (const d of [-1, 0, 0.5]) {
      const sample = { logProb: -2, behavior: -1e9, reference: -2 - d }
      const { value, byLogProb } = sampledKl(sample, { klCorrection: false })
      expectNear([value, byLogProb], [Math.exp(-d) - 1 + d, 1 - Math.exp(-d)])
    }
  })

  it('has the value and the gradient of the exact KL in expectation, for samples of any policy', () => {
    fc.assert(
      fc.property(policies, ([logits, other, acted, began]) => {
        const [current, reference, behavior, proximal] = [logits, other, acted, began].map((x) => logSoftmax(x!))
        const exact = exactKl(current!, reference!)
        let value = 0
        const byLogit = new Float64Array(current!.length)
        for (let i = 0; i < current!.length; i++) {
          const sample = {
            logProb: current![i]!,
            behavior: behavior![i]!,
            proximal: proximal![i]!,
            reference: reference![i]!,
          }
          const kl = sampledKl(sample)
          value += Math.exp(behavior![i]!) * kl.value
          logProbByLogit(current!, i).forEach((slope, j) => {
            byLogit[j]! += Math.exp(behavior![i]!) * kl.byLogProb * slope
          })
        }
        expectNear([value], [exact.value])
        expectNear(byLogit, [...exact.byLogit])
      }),
    )
  })

  it('would be wrong off-policy without the weight', () => {
    const [current, reference, behavior] = [
      [1, 0, -1],
      [0, 0, 0],
      [-1, 0, 1],
    ].map(logSoftmax)
    const unweighted = sumOf(
      behavior!.map((logP, i) => {
        const logProb = current![i]!
        return Math.exp(logP) * sampledKl({ logProb, behavior: logProb, reference: reference![i]! }).value
      }),
    )
    expect(unweighted).toBeGreaterThan(2 * exactKl(current!, reference!).value)
  })
})
