import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { grpo, minusBaseline, minusBatchMean, nextRunningMean, rloo } from '../../src/train/advantages.ts'
import { expectNear, numbers, sumOf } from './finite-differences.ts'

const group = fc.array(numbers(10), { minLength: 2, maxLength: 12 }).filter((rewards) => new Set(rewards).size > 1)

describe('GRPO', () => {
  it('has the reference advantages', () => {
    const { advantages, flat, single } = grpo([
      [2, 2],
      [1, 3],
    ])
    expect([...advantages[0]!]).toEqual([0, 0])
    expectNear(advantages[1]!, [-Math.SQRT1_2, Math.SQRT1_2], 1e-6)
    expect({ flat, single }).toEqual({ flat: [0], single: [] })
  })

  it.each([
    [{ eps: 1e-6 }, [1.499997, -0.499999, -0.499999, -0.499999], 1e-6],
    [{ eps: 1e-4 }, [1.4997, -0.4999, -0.4999, -0.4999], 1e-5],
    [{ std: false }, [0.75, -0.25, -0.25, -0.25], 0],
    [{}, [1.499997, -0.499999, -0.499999, -0.499999], 1e-6],
  ])('has the reference advantages of one success in four with %o', (settings, expected, error) => {
    expectNear(grpo([[1, 0, 0, 0]], settings).advantages[0]!, expected, error)
  })

  it('sums to 0 in each group and, over the standard deviation, has variance 1', () => {
    fc.assert(
      fc.property(group, (rewards) => {
        const [plain] = grpo([rewards], { std: false }).advantages
        const [scaled] = grpo([rewards], { eps: 0 }).advantages
        fc.pre(plain!.some((advantage) => Math.abs(advantage) > 1e-4))
        expectNear([sumOf(plain!), sumOf(scaled!)], [0, 0], 1e-6)
        expectNear([sumOf(scaled!.map((advantage) => advantage ** 2)) / (rewards.length - 1)], [1], 1e-9)
      }),
    )
  })
})

describe('RLOO', () => {
  it('has the reference advantages', () => {
    const { advantages, single, flat } = rloo([[6, 3], [9, 12], [1]])
    expect(advantages.flatMap((group) => [...group])).toEqual([3, -3, -3, 3, 0])
    expect({ single, flat }).toEqual({ single: [2], flat: [] })
  })

  it('subtracts the mean of the others', () => {
    fc.assert(
      fc.property(group, (rewards) => {
        const expected = rewards.map((reward, i) => reward - sumOf(rewards.toSpliced(i, 1)) / (rewards.length - 1))
        expectNear(rloo([rewards]).advantages[0]!, expected, 1e-10)
      }),
    )
  })
})

describe.each([
  ['GRPO', grpo],
  ['RLOO', rloo],
])('%s', (_, advantagesOf) => {
  it('names groups that teach nothing, and gives them exactly 0', () => {
    const { advantages, flat, single } = advantagesOf([[0.1, 0.1, 0.1], [1, 0], [0.7 + 0.2 + 0.1, 1], [5], [], [0, 0]])
    expect(flat).toEqual([0, 2, 5])
    expect(single).toEqual([3])
    expect(advantages.map((group) => group.length)).toEqual([3, 2, 2, 1, 0, 2])
    for (const index of [...flat, ...single])
      expect(advantages[index]!.every((value) => Object.is(value, 0))).toBe(true)
  })

  it('is not moved by other groups, nor by a constant', () => {
    fc.assert(
      fc.property(group, group, fc.integer({ min: -8, max: 8 }), (one, other, shift) => {
        const alone = advantagesOf([one]).advantages[0]!
        expect(advantagesOf([other, one]).advantages[1]).toEqual(alone)
        const moved = one.map((reward) => reward + shift)
        fc.pre(Math.max(...one) - Math.min(...one) > 1e-3)
        expectNear(advantagesOf([moved]).advantages[0]!, [...alone], 1e-9)
      }),
    )
  })

  it('refuses rewards of rollouts that have none', () => {
    expect(() =>
      advantagesOf([
        [1, 0],
        [1, Number.NaN],
      ]),
    ).toThrow(/rewards of group 1: number 1 is NaN.*Drop rollouts/)
  })
})

describe('a baseline', () => {
  it('is one number, or one for each return', () => {
    expect([...minusBaseline([1, 2, 3], 2)]).toEqual([-1, 0, 1])
    expect([...minusBaseline([1, 2, 3], [1, 1, 4])]).toEqual([0, 1, -1])
    expect(() => minusBaseline([1, 2, 3], [1])).toThrow('baseline: the length must be 3; it is 1')
  })

  it('can be the mean of the batch', () => {
    expect([...minusBatchMean([1, 2, 6])]).toEqual([-2, -1, 3])
    expect([...minusBatchMean([])]).toEqual([])
  })

  it('can be a running mean, which is the mean of all so far', () => {
    fc.assert(
      fc.property(fc.array(numbers(10), { minLength: 1 }), fc.nat(100), (returns, cut) => {
        const { mean, weight } = nextRunningMean(undefined, returns)
        expectNear([mean, weight], [sumOf(returns) / returns.length, returns.length], 1e-10)
        // The same number wherever the batches were cut.
        expect(nextRunningMean(nextRunningMean(undefined, returns.slice(0, cut)), returns.slice(cut))).toEqual({
          mean,
          weight,
        })
      }),
    )
  })

  it('can forget: older returns count less', () => {
    const { mean } = nextRunningMean(undefined, [4, 2, 1], 0.5)
    expectNear([mean], [(4 / 4 + 2 / 2 + 1) / (1 / 4 + 1 / 2 + 1)])
    expect(() => nextRunningMean(undefined, [1], 2)).toThrow('`decay` must be a number from 0 to 1; it is 2')
  })
})
