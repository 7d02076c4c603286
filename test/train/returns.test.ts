import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gae, returns } from '../../src/train/returns.ts'
import { moveRewards } from '../../src/trajectory/rewards.ts'
import { expectNear, numbers, sumOf } from './finite-differences.ts'

const rewards = [1, 2, 3]
const values = [0.5, 1, 1.5]
const share = fc.double({ min: 0, max: 1, noNaN: true })
const steps = fc.array(fc.record({ reward: numbers(10), value: numbers(10), sampled: fc.boolean() }), { maxLength: 30 })

describe('returns', () => {
  it('are the reference values', () => {
    expect([...returns(rewards, 0.5)]).toEqual([2.75, 3.5, 3])
  })

  it('go on with the value of the state that a truncated episode ended in', () => {
    expect([...returns(rewards, 0.5, 8)]).toEqual([3.75, 5.5, 7])
  })

  it('are sums of discounted rewards', () => {
    fc.assert(
      fc.property(fc.array(numbers(10), { maxLength: 20 }), share, numbers(10), (rewards, discount, last) => {
        const all = [...rewards, last]
        const expected = rewards.map((_, t) => sumOf(all.slice(t).map((reward, k) => discount ** k * reward)))
        expectNear(returns(rewards, discount, last), expected, 1e-11)
      }),
    )
  })

  it('refuse rewards that are not numbers, and discounts that grow', () => {
    expect(() => returns([1, Number.NaN], 1)).toThrow(/rewards: number 1 is NaN; it must be finite\. Drop rollouts/)
    expect(() => returns([1], 1.1)).toThrow('`discount` must be a number from 0 to 1; it is 1.1')
  })
})

describe('GAE', () => {
  it.each([
    [1, 1, [6, 5, 3]],
    [0.5, 1, [2.75, 3.5, 3]],
    [1, 0.5, [3.625, 4.25, 3]],
  ])('has the reference returns with discount %d and lambda %d', (discount, lambda, expected) => {
    const { advantages, returns } = gae(rewards, values, { discount, lambda })
    expect([...returns]).toEqual(expected)
    expect([...advantages]).toEqual(expected.map((target, t) => target - values[t]!))
  })

  it('has the reference advantages of a terminal reward', () => {
    expect([...gae([0, 0, 5], [1, 2, 3], { discount: 1, lambda: 0 }).advantages]).toEqual([1, 1, 2])
  })

  it('skips masked tokens', () => {
    const { advantages, returns } = gae(rewards, values, { discount: 1, lambda: 1, mask: [1, 0, 1] })
    expect([...returns]).toEqual([4, 0, 3])
    expect([...advantages]).toEqual([3.5, 0, 1.5])
  })

  it('keeps the rewards of masked tokens that were moved before', () => {
    const mask = [1, 0, 1]
    expect([...gae(moveRewards(rewards, mask), values, { discount: 1, lambda: 1, mask }).returns]).toEqual([6, 0, 3])
  })

  it('is the same over masked tokens as without them', () => {
    fc.assert(
      fc.property(steps, share, share, numbers(10), (steps, discount, lambda, last) => {
        const sampled = steps.filter(({ sampled }) => sampled)
        const short = gae(rewardsOf(sampled), valuesOf(sampled), { discount, lambda, last })
        const mask = Uint8Array.from(steps, ({ sampled }) => (sampled ? 1 : 0))
        const long = gae(rewardsOf(steps), valuesOf(steps), { discount, lambda, last, mask })
        expect(long.advantages.filter((_, t) => mask[t])).toEqual(short.advantages)
        expect(long.returns.filter((_, t) => mask[t])).toEqual(short.returns)
        expect(sumOf(long.advantages.filter((_, t) => !mask[t]))).toBe(0)
      }),
    )
  })

  it('is the sum of discounted one-step errors', () => {
    fc.assert(
      fc.property(steps, share, share, numbers(10), (steps, discount, lambda, last) => {
        const values = [...valuesOf(steps), last]
        const deltas = steps.map(({ reward }, t) => reward + discount * values[t + 1]! - values[t]!)
        const expected = deltas.map((_, t) =>
          sumOf(deltas.slice(t).map((delta, k) => (discount * lambda) ** k * delta)),
        )
        expectNear(gae(rewardsOf(steps), valuesOf(steps), { discount, lambda, last }).advantages, expected, 1e-11)
      }),
    )
  })

  it('has the discounted returns with lambda 1, whatever the values', () => {
    fc.assert(
      fc.property(steps, share, numbers(10), (steps, discount, last) => {
        const expected = returns(rewardsOf(steps), discount, last)
        expectNear(gae(rewardsOf(steps), valuesOf(steps), { discount, lambda: 1, last }).returns, [...expected], 1e-10)
      }),
    )
  })

  it('refuses arrays of different lengths', () => {
    expect(() => gae([1, 2], [1], { discount: 1, lambda: 1 })).toThrow('values: the length must be 2; it is 1')
    expect(() => gae([1, 2], [1, 1], { discount: 1, lambda: 1, mask: [1] })).toThrow('mask: the length must be 2')
    expect(() => gae([1], [1], { discount: 1, lambda: 2 })).toThrow('`lambda` must be a number from 0 to 1; it is 2')
  })
})

describe('moving rewards off masked tokens', () => {
  // Whole numbers, so that sums are exact in any order.
  const tokens = fc.array(fc.record({ reward: fc.integer({ min: -99, max: 99 }), sampled: fc.boolean() }), {
    maxLength: 30,
  })

  it('loses nothing, and leaves nothing on a masked token', () => {
    fc.assert(
      fc.property(tokens, (tokens) => {
        const mask = tokens.map(({ sampled }) => (sampled ? 1 : 0))
        const moved = moveRewards(rewardsOf(tokens), mask)
        expect(sumOf(moved)).toBe(sumOf(rewardsOf(tokens)))
        if (mask.includes(1)) expect(moved.every((reward, t) => reward === 0 || mask[t] === 1)).toBe(true)
      }),
    )
  })

  it('lets the first sampled token see all that the episode earned', () => {
    fc.assert(
      fc.property(tokens, (tokens) => {
        const mask = tokens.map(({ sampled }) => (sampled ? 1 : 0))
        fc.pre(mask.includes(1))
        const zeros = new Float64Array(tokens.length)
        const settings = { discount: 1, lambda: 1, mask }
        const { advantages } = gae(moveRewards(rewardsOf(tokens), mask), zeros, settings)
        expect(advantages[mask.indexOf(1)]).toBe(sumOf(rewardsOf(tokens)))
      }),
    )
  })

  it('never moves a reward past the token that was sampled after it', () => {
    fc.assert(
      fc.property(tokens, fc.nat(30), (tokens, cut) => {
        const mask = tokens.map(({ sampled }) => (sampled ? 1 : 0))
        fc.pre(mask[cut] === 1 && mask.indexOf(1) < cut)
        // What is before a sampled token stays before it.
        const moved = moveRewards(rewardsOf(tokens), mask)
        expect(sumOf(moved.slice(0, cut))).toBe(sumOf(rewardsOf(tokens).slice(0, cut)))
      }),
    )
  })
})

const rewardsOf = (steps: readonly { reward: number }[]) => steps.map(({ reward }) => reward)
const valuesOf = (steps: readonly { value: number }[]) => steps.map(({ value }) => value)
