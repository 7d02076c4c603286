import { expect, test } from 'vitest'
import { Budget } from '../../src/executor/budget.ts'

const NOTHING = { costUsd: 0, tokens: 0 }

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
    spent: { costUsd: 0, tokens: 99 },
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
  budget.spend(usage)
  expect([budget.isSpent, String(budget)]).toEqual([isSpent, says])
})
