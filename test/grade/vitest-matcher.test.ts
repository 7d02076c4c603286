import { Runners } from 'manyworlds'
import { outcomeOf, summarizeOutcomes } from 'manyworlds/grade'
import 'manyworlds/vitest'
import { describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { thrower } from '../agents/failing.ts'

type Response = { id: string; status: 'success' | 'cancelled'; grade?: { reward: number } }
const responses = (solved: number, unsolved: number, cancelled = 0): Response[] => [
  ...Array.from({ length: solved }, (_, at) => ({
    id: `good-${at}`,
    status: 'success' as const,
    grade: { reward: 1 },
  })),
  ...Array.from({ length: unsolved }, (_, at) => ({
    id: `bad-${at}`,
    status: 'success' as const,
    grade: { reward: 0 },
  })),
  ...Array.from({ length: cancelled }, (_, at) => ({ id: `cut-${at}`, status: 'cancelled' as const })),
]

/** What a failed assertion says. */
function failure(assertion: () => void): string {
  try {
    assertion()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('the assertion passed')
}

describe('toPassAtLeast', () => {
  it('passes only if the lower end of the interval is high enough', () => {
    expect(responses(29, 0)).toPassAtLeast(0.9)
    expect(responses(28, 0)).not.toPassAtLeast(0.9)
    expect(responses(28, 0)).toPassAtLeast(0.9, { confidence: 0.9 })
    // 96 % of 50 solved is not yet 90 % of all.
    expect(responses(48, 2)).not.toPassAtLeast(0.9)
    expect(responses(192, 8)).toPassAtLeast(0.9)
  })

  it('says how many were solved, the interval, and which tasks were not', () => {
    expect(failure(() => expect(responses(48, 2, 3)).toPassAtLeast(0.9)).split('\n')).toEqual([
      '3 of 53 rollouts have no result, more than 2.0 % (maxUngraded): the others may not be like all',
      'expected at least 90.0 % of tasks to be solved, with 95 % confidence; the results show at least 87.9 %',
      'solved 48 of 50 rollouts of 53 tasks, 50 with a result: 96.0 % (95 % interval 86.2 to 99.6)',
      'unsolved: bad-0, bad-1',
      'not counted: 3 rollouts without a result: 3 cancelled; of cut-0, cut-1, cut-2',
    ])
    expect(failure(() => expect(responses(36, 0)).not.toPassAtLeast(0.9))).toContain(
      'at least 90.0 % of tasks are solved',
    )
  })

  it('fails if too many rollouts have no result, whatever the others show', () => {
    expect(responses(100, 0, 2)).toPassAtLeast(0.9)
    expect(responses(100, 0, 100)).not.toPassAtLeast(0.9)
    expect(responses(100, 0, 100)).toPassAtLeast(0.9, { maxUngraded: 0.5 })
  })

  it('judges what runTask returns', async () => {
    const results = await Runners.runTask([
      ...Array.from({ length: 10 }, (_, at) => echo.task(`${at}`, { id: `echo-${at}` })),
      thrower.task('string', { id: 'fails' }),
    ])
    expect(results).toPassAtLeast(0.5)
    expect(summarizeOutcomes([...results.values()].map(outcomeOf))).toMatchObject({ solved: 10, unsolved: 1 })
    expect(failure(() => expect([...results.values()]).toPassAtLeast(0.9))).toContain('unsolved: fails (TASK_THREW)')
  })

  it('judges a summary, with the confidence that it was made with', () => {
    const summary = summarizeOutcomes(
      responses(36, 0).map(({ id, ...rest }) => ({ ...rest, taskId: id })),
      { confidence: 0.99 },
    )
    expect(summary).toPassAtLeast(0.8)
    expect(() => expect(summary).toPassAtLeast(0.8, { confidence: 0.95 })).toThrow(/has a confidence of 0\.99/)
  })

  it('throws, also after not, where there is nothing to judge', () => {
    expect(() => expect([]).not.toPassAtLeast(0.9)).toThrow(/no rollout has a result/)
    expect(() => expect(responses(0, 0, 5)).not.toPassAtLeast(0.9)).toThrow(/5 rollouts without a result: 5 cancelled/)
    expect(() => expect(5).not.toPassAtLeast(0.9)).toThrow(/give the responses of runTask/)
    expect(() => expect([...responses(1, 0), 5]).not.toPassAtLeast(0.9)).toThrow(/item 1 is not a response/)
    expect(() => expect(responses(1, 0)).not.toPassAtLeast(90)).toThrow(/must be a number above 0 and below 1/)
  })
})
