import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Budget } from '../../src/executor/budget.ts'
import { randomFrom } from '../../src/random.ts'

const NOTHING = {}

test.each([
  { what: 'no limit', limits: {}, spent: NOTHING, usage: { costUsd: 1e9, inputTokens: 1e9 }, isSpent: false, says: '' },
  {
    what: 'below',
    limits: { maxCostUsd: 1 },
    spent: NOTHING,
    usage: { costUsd: 0.999 },
    isSpent: false,
    says: '$0.999 of $1.00',
  },
  {
    what: 'reached',
    limits: { maxCostUsd: 1 },
    spent: NOTHING,
    usage: { costUsd: 1 },
    isSpent: true,
    says: '$1.00 of $1.00',
  },
  {
    what: 'in and out together',
    limits: { maxTokens: 10_000 },
    spent: NOTHING,
    usage: { inputTokens: 6000, outputTokens: 4034 },
    isSpent: true,
    says: '10,034 of 10,000 tokens',
  },
  {
    what: 'earlier sessions count',
    limits: { maxTokens: 100 },
    spent: { inputTokens: 90, outputTokens: 9 },
    usage: { outputTokens: 1 },
    isSpent: true,
    says: '100 of 100 tokens',
  },
  {
    what: 'either limit is enough',
    limits: { maxCostUsd: 0.05, maxTokens: 100 },
    spent: NOTHING,
    usage: { costUsd: 0.00123, inputTokens: 100 },
    isSpent: true,
    says: '$0.00123 of $0.0500, 100 of 100 tokens',
  },
])('a budget: $what', ({ limits, spent, usage, isSpent, says }) => {
  const budget = new Budget(limits, spent)
  budget.spend(usage, 0)
  expect([budget.isSpent, String(budget)]).toEqual([isSpent, says])
})

/** Runs tasks of these costs, so many at once, in a random order of events. Returns what was spent and how many ran at once at first. */
function simulate(costs: readonly number[], atOnce: number, maxCostUsd: number, seed: number) {
  const budget = new Budget({ maxCostUsd }, NOTHING)
  const random = randomFrom({ seed, purpose: 'run', stream: 'budget', task: '', visit: 0, rollout: 1 })
  const running: { index: number; left: number }[] = []
  let [spent, next, ended, early] = [0, 0, 0, 0]
  for (;;) {
    while (next < costs.length && running.length < atOnce && budget.admit(next))
      running.push({ index: next, left: costs[next++]! })
    if (ended < 10) early = Math.max(early, running.length - ended)
    if (running.length === 0) return { spent, early, ran: next }
    const at = Math.floor(random() * running.length)
    const task = running[at]!
    // In steps, as agents report them; some report everything at their end.
    const part = random() < 0.5 ? task.left : task.left * random()
    budget.spend({ costUsd: part }, task.index)
    spent += part
    task.left -= part
    if (task.left > 0) continue
    running.splice(at, 1)
    budget.release(task.index)
    ended++
  }
}

const cost = fc.double({ min: 0.001, max: 0.1, noNaN: true })

test('a budget is exceeded by less than 5 % or one task, once the most expensive task was seen among the first', () => {
  const scenario = fc.record({
    costs: fc.array(cost, { minLength: 1, maxLength: 200 }),
    atOnce: fc.integer({ min: 1, max: 64 }),
    limit: fc.double({ min: 0.01, max: 5, noNaN: true }),
    seed: fc.nat(),
  })
  fc.assert(
    fc.property(scenario, ({ costs, atOnce, limit, seed }) => {
      const largest = Math.max(...costs)
      const { spent, early, ran } = simulate([largest, ...costs], atOnce, limit, seed)
      expect(spent).toBeLessThan(limit + Math.max(limit * 0.05, largest) + 1e-9)
      // At first, few at once; and the budget is used, not only kept.
      expect(early).toBeLessThanOrEqual(1)
      if (ran <= costs.length) expect(spent).toBeGreaterThanOrEqual(limit - 1e-9)
    }),
    { numRuns: 2000 },
  )
})

test('with random costs, a budget is exceeded by little, however many tasks run at once', () => {
  const random = randomFrom({ seed: 7, purpose: 'run', stream: 'costs', task: '', visit: 0, rollout: 1 })
  for (let trial = 0; trial < 200; trial++) {
    const costs = Array.from({ length: 3000 }, () => 0.001 * Math.exp(random() + random() + random()))
    const { spent } = simulate(costs, 64, 1, trial)
    expect(spent).toBeLessThan(1 + 0.05)
  }
})

test('tasks that cost nothing are not held back for long', () => {
  const budget = new Budget({ maxCostUsd: 1 }, NOTHING)
  for (let task = 0; task < 100; task++) {
    expect(budget.admit(task)).toBe(true)
    budget.release(task)
  }
  for (let task = 100; task < 200; task++) expect(budget.admit(task)).toBe(true)
})
