import fc from 'fast-check'
import { meanReward, passAtK, passRate, successRate } from 'manyworlds/grade'
import { describe, expect, it } from 'vitest'
import { boundedInterval, studentInterval } from '../../src/grade/mean-interval.ts'
import { studentT } from '../../src/grade/student-t.ts'
import { cpuMs } from '../support/cpu-ms.ts'

const singles = (tasks: number, solved: number) => Array.from({ length: tasks }, (_, at) => [at < solved])

describe('the interval of a success rate', () => {
  // scipy.stats.beta.ppf, as in Clopper and Pearson.
  it.each([
    [0.8, 10, 3, 0.115825278029763, 0.551730832383599],
    [0.8, 1000, 613, 0.5926085310399138, 0.63305957674202],
    [0.95, 1, 1, 0.025, 1],
    [0.95, 10, 0, 0, 0.3084971078187607],
    [0.95, 10, 3, 0.0667395111777345, 0.6524528500599973],
    [0.95, 27, 26, 0.8102943825869554, 0.9990627429080553],
    [0.95, 50, 49, 0.8935304542885001, 0.9994937720169592],
    [0.95, 200, 4, 0.00547556587955645, 0.05041360908989629],
    [0.95, 1000, 613, 0.5820152430808954, 0.6433173635457232],
    [0.95, 10_000, 9999, 0.9994429630020529, 0.9999974682224065],
    [0.99, 27, 26, 0.7553637918856725, 0.9998143675346703],
    [0.99, 200, 4, 0.003380764192937229, 0.06163055471618897],
  ])('is the exact one for one rollout: confidence %d, %d tasks, %d solved', (confidence, tasks, solved, low, high) => {
    const estimate = successRate(singles(tasks, solved), { confidence })!
    expect(estimate.value).toBeCloseTo(solved / tasks, 12)
    expect(estimate.low).toBeCloseTo(low, 8)
    expect(estimate.high).toBeCloseTo(high, 8)
  })

  it('grows neither narrower nor wider when every rollout of a task ends alike', () => {
    const once = successRate(singles(20, 13))!
    const eightTimes = successRate(singles(20, 13).map(([result]) => Array.from({ length: 8 }, () => result!)))!
    expect(eightTimes.low).toBeCloseTo(once.low, 10)
    expect(eightTimes.high).toBeCloseTo(once.high, 10)
    expect([once.rollouts, eightTimes.rollouts]).toEqual([20, 160])
  })

  it('leaves rollouts without a result out, and weighs tasks alike', () => {
    const estimate = successRate([[true, true, true, null], [false, null], [null], [true, false]])!
    expect(estimate).toMatchObject({ tasks: 3, rollouts: 6 })
    expect(estimate.value).toBeCloseTo((1 + 0 + 0.5) / 3, 12)
  })

  it('is there for one task, with a warning, and missing for none', () => {
    const one = successRate([[true, true]])!
    expect([one.low, one.high]).toEqual([expect.closeTo(0.025, 9), 1])
    expect(one.warning).toBe('one task says almost nothing about other tasks')
    expect(successRate(singles(2, 1))!.warning).toBeUndefined()
    expect(successRate([])).toBeNull()
    expect(successRate([[null]])).toBeNull()
  })

  it('copes with a million tasks in seconds', () => {
    const tasks = Array.from({ length: 1_000_000 }, (_, at) => [at % 3 === 0, at % 7 === 0])
    const began = cpuMs()
    const estimate = successRate(tasks)!
    expect(cpuMs() - began).toBeLessThan(10_000)
    expect(estimate.high - estimate.low).toBeLessThan(0.002)
  })

  it.each([0, 0.3, 1, Number.NaN, 95])('refuses a confidence of %d', (confidence) => {
    expect(() => successRate(singles(2, 1), { confidence })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining('`confidence`') }),
    )
  })
})

const rollouts = fc.array(fc.option(fc.boolean(), { freq: 8 }), { minLength: 1, maxLength: 9 })
const someTasks = fc
  .array(rollouts, { minLength: 1, maxLength: 60 })
  .filter((tasks) => tasks.some((results) => results.some((result) => result !== null)))

describe('whatever the results are', () => {
  it('an interval has a width, holds its estimate, stays within 0 to 1, and widens with confidence', () => {
    fc.assert(
      fc.property(someTasks, (tasks) => {
        let narrower = { low: Number.POSITIVE_INFINITY, high: Number.NEGATIVE_INFINITY }
        for (const confidence of [0.5, 0.8, 0.95, 0.99, 0.9999]) {
          const estimate = successRate(tasks, { confidence })!
          expect(estimate.high).toBeGreaterThan(estimate.low)
          expect(estimate.low).toBeGreaterThanOrEqual(0)
          expect(estimate.high).toBeLessThanOrEqual(1)
          expect(estimate.low).toBeLessThanOrEqual(Math.min(estimate.value, narrower.low))
          expect(estimate.high).toBeGreaterThanOrEqual(Math.max(estimate.value, narrower.high))
          narrower = estimate
        }
      }),
      { numRuns: 300 },
    )
  })

  it('failures have the mirrored interval of successes', () => {
    fc.assert(
      fc.property(someTasks, (tasks) => {
        const estimate = successRate(tasks)!
        const flipped = successRate(
          tasks.map((results) => results.map((result) => (result === null ? null : !result))),
        )!
        expect(flipped.low).toBeCloseTo(1 - estimate.high, 8)
        expect(flipped.high).toBeCloseTo(1 - estimate.low, 8)
      }),
      { numRuns: 300 },
    )
  })

  it('one more task that is solved never lowers the interval', () => {
    fc.assert(
      fc.property(someTasks, (tasks) => {
        const [before, after] = [successRate(tasks)!, successRate([...tasks, [true]])!]
        expect(after.low).toBeGreaterThanOrEqual(before.low - 1e-9)
        expect(after.high).toBeGreaterThanOrEqual(before.high - 1e-9)
      }),
      { numRuns: 300 },
    )
  })
})

describe('the interval of a mean reward', () => {
  // By the formula for distinct values (divided differences), in 60 digits.
  it.each([
    [[0.1, 0.35, 0.5, 0.8, 0.95], 0.204863073929926, 0.8421900383632623],
    [[0.62, 0.64, 0.65, 0.7, 0.71, 0.72, 0.77, 0.8, 0.83, 0.9], 0.504198469218345, 0.8276561400885686],
    [[0.05, 0.99, 0.97, 0.93, 0.91, 0.9, 0.85, 0.8], 0.4415529966169411, 0.9333094974598402],
  ])('is right for %j', (values, low, high) => {
    const estimate = meanReward(values.map((value) => [value]))!
    expect(estimate.low).toBeCloseTo(low, 8)
    expect(estimate.high).toBeCloseTo(high, 8)
    expect(estimate.warning).toBeUndefined()
  })

  it('has a width also where all rewards are equal', () => {
    const { low, high } = meanReward(Array.from({ length: 200 }, () => [0.7]))!
    expect(low).toBeLessThan(0.695)
    expect(high).toBeGreaterThan(0.702)
  })

  it.each([1, 2, 100, 10_000, 1_000_000])('is the closed form for %d equal rewards', (tasks) => {
    for (const confidence of [0.5, 0.95, 0.9999]) {
      const { low, high } = boundedInterval(
        Array.from({ length: tasks }, () => 0.7),
        [0, 1],
        confidence,
      )
      const unseen = 1 - ((1 - confidence) / 2) ** (1 / tasks)
      expect((0.7 - low) / (0.7 * unseen)).toBeCloseTo(1, 6)
      expect((high - 0.7) / (0.3 * unseen)).toBeCloseTo(1, 6)
    }
  })

  it('follows the range that rewards are said to have', () => {
    const rewards = [[-0.9], [-0.2], [0.1], [0.4], [0.75]]
    const estimate = meanReward(rewards, { rewardRange: [-1, 1] })!
    expect(estimate.low).toBeCloseTo(-0.621040065769622, 8)
    expect(estimate.high).toBeCloseTo(0.6210149603959157, 8)
    expect(estimate.warning).toBeUndefined()
  })

  it('warns of rewards outside of 0 to 1, and is Student’s there', () => {
    const estimate = meanReward([[3], [5], [-2], [8], [4.5], [0]])!
    // scipy.stats.t.interval
    expect(estimate.low).toBeCloseTo(-0.7065195980417682, 9)
    expect(estimate.high).toBeCloseTo(6.873186264708435, 9)
    expect(estimate.warning).toContain('rewards from -2 to 8 are outside 0 to 1')
    expect(estimate.warning).toContain('`rewardRange`')
  })

  it('says that nothing bounds equal rewards without a range', () => {
    const estimate = meanReward([[5], [5], [5]])!
    expect([estimate.low, estimate.high]).toEqual([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY])
    expect(estimate.warning).toContain('all rewards are equal')
  })

  it('takes sums of weights for what they are meant to be', () => {
    const reward = 0.1 + 0.2 + 0.7 + 2 ** -52
    expect(reward).toBeGreaterThan(1)
    expect(meanReward([[reward], [0]])!.warning).toBeUndefined()
  })

  it('refuses rewards that are no numbers, and ranges that are none', () => {
    expect(() => meanReward([[Number.NaN]])).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
    expect(() => meanReward([[1]], { rewardRange: [1, 0] })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    )
  })

  it('does not depend on how many distinct values there are', () => {
    const values = Array.from({ length: 5000 }, (_, at) => ((at * 0.6180339887) % 1) ** 2)
    const rounded = values.map((value) => Math.round(value * 500) / 500)
    const [exact, coarse] = [boundedInterval(values, [0, 1], 0.95), boundedInterval(rounded, [0, 1], 0.95)]
    expect(exact.low).toBeCloseTo(coarse.low, 4)
    expect(exact.high).toBeCloseTo(coarse.high, 4)
  })
})

describe('Student’s t', () => {
  // scipy.stats.t.ppf
  it.each([
    [0.95, 1, 12.706204736174694],
    [0.95, 2, 4.302652729749462],
    [0.95, 9, 2.262157162798205],
    [0.8, 10, 1.372183641110336],
    [0.999, 99, 3.391528833363685],
    [0.95, 999, 1.9623414611334493],
    [0.95, 100_000, 1.9599877075346095],
  ])('at confidence %d and %d degrees of freedom', (confidence, df, expected) => {
    expect(studentT(confidence, df)).toBeCloseTo(expected, 8)
  })

  it('is not asked of one value', () => {
    expect(studentInterval([2], 0.95)).toEqual({ low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY })
  })
})

describe('pass@k', () => {
  // 1 - C(n-c, k) / C(n, k), in exact fractions.
  it.each([
    [10, 3, 1, 0.3],
    [10, 3, 2, 8 / 15],
    [10, 3, 5, 11 / 12],
    [200, 1, 100, 0.5],
    [200, 20, 10, 0.660225623763214],
    [5, 0, 5, 0],
    [5, 5, 1, 1],
    [8, 4, 4, 69 / 70],
    [1000, 2, 500, 0.7502502502502503],
  ])('of %d rollouts, %d solved, k = %d', (n, c, k, expected) => {
    expect(passAtK(n, c, k)).toBeCloseTo(expected, 12)
  })

  it('is the share of choices that hold a success', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }),
        fc.integer({ min: 1, max: 9 }),
        (results, k) => {
          fc.pre(k <= results.length)
          const choices = choose(results, k)
          const share = choices.filter((choice) => choice.some(Boolean)).length / choices.length
          expect(passAtK(results.length, results.filter(Boolean).length, k)).toBeCloseTo(share, 12)
        },
      ),
    )
  })

  it('is averaged over tasks, with an interval', () => {
    const estimate = passRate(
      [
        [true, false, false, false],
        [false, false, false, false],
        [true, true, true, true],
      ],
      2,
    )!
    expect(estimate.value).toBeCloseTo((0.5 + 0 + 1) / 3, 12)
    expect(estimate.low).toBeLessThan(estimate.value)
    expect(estimate.high).toBeGreaterThan(estimate.value)
  })

  it('is the success rate for k = 1', () => {
    const tasks = [[true, false, true], [false, null, null], [true]]
    expect(passRate(tasks, 1)).toEqual(successRate(tasks))
  })

  it('leaves tasks with too few rollouts out, and says so', () => {
    const estimate = passRate(
      [
        [true, false],
        [true, null],
        [null, null],
      ],
      2,
    )!
    expect(estimate.tasks).toBe(1)
    expect(estimate.warning).toContain('1 task has fewer than 2 rollouts with a result and is left out of pass@2')
    expect(passRate([[true]], 2)).toBeNull()
    expect(() => passRate([[true]], 0)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })
})

function choose<T>(items: readonly T[], k: number): T[][] {
  if (k === 0) return [[]]
  return items.flatMap((item, at) => choose(items.slice(at + 1), k - 1).map((rest) => [item, ...rest]))
}
