import { Runners } from 'manyworlds'
import {
  compareRuns,
  exactMatch,
  gaiaMatch,
  includes,
  json,
  numeric,
  outcomeOf,
  regex,
  summarizeOutcomes,
  weighted,
} from 'manyworlds/grade'
import { afterAll, describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { thrower } from '../agents/failing.ts'
import { nested, person, rubric } from '../agents/rubric.ts'

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 1 } as const

describe('workers grade', () => {
  const graders = [
    { grade: exactMatch({ ignoreCase: true }), answer: 'PARIS', groundTruth: 'paris', reward: 1 },
    { grade: numeric({ last: true, relative: 0.01 }), answer: 'about 1,001', groundTruth: 1000, reward: 1 },
    { grade: regex(/^p/i), answer: 'Paris', groundTruth: undefined, reward: 1 },
    { grade: json({ ignoreExtra: true }), answer: '{"a":1,"b":2}', groundTruth: { a: 1 }, reward: 1 },
    { grade: gaiaMatch(), answer: '$1,000', groundTruth: '1000', reward: 1 },
    { grade: includes(), answer: 'Paris or Rome', groundTruth: 'rome', reward: 1 },
    { grade: exactMatch(), answer: 'x', groundTruth: undefined, reward: null },
    {
      grade: weighted({ exact: [exactMatch(), 3], close: [numeric({ absolute: 1 }), 1] }),
      answer: '5',
      groundTruth: '6',
      reward: 0.25,
    },
    { grade: rubric, answer: 'paris', groundTruth: 'Paris', reward: 1 },
    { grade: rubric, answer: 'paris, I think', groundTruth: 'Paris', reward: 0 },
    { grade: nested, answer: '5', groundTruth: 5, reward: 0.5 },
    { grade: person, answer: '{"name":"Ada","age":36}', groundTruth: undefined, reward: 1 },
    { grade: person, answer: '{"name":"Ada"}', groundTruth: undefined, reward: 0 },
  ]

  it('by every ready-made grader, and by those that are made of them', async () => {
    const tasks = graders.map(({ grade, answer, groundTruth }, at) =>
      echo.task(answer, { id: `${at}`, grade, ...(groundTruth === undefined ? {} : { groundTruth }) }),
    )
    const responses = await Runners.runTask(tasks, base)
    const rewards = [...responses.values()].map(({ grade }) => [
      grade?.grader.name,
      grade?.reward,
      grade?.error?.message,
    ])
    expect(rewards).toEqual(graders.map(({ grade, reward }) => [grade.name, reward, undefined]))
  })

  it('within the time they have: a pattern that backtracks costs its own grade only', async () => {
    const tasks = ['fine', `${'a'.repeat(40)}!`].map((text) => echo.task(text, { id: text.slice(0, 4) }))
    const responses = await Runners.runTask(tasks, { ...base, grade: regex(/^(fine|(a+)+)$/), gradeTimeoutMs: 4000 })
    expect(responses.get('fine')!.grade).toMatchObject({ reward: 1 })
    expect(responses.get('aaaa')!.grade).toMatchObject({ reward: null, error: { code: 'GRADER_BLOCKED_WORKER' } })
  })
})

it('a run with rollouts is summarized, and compared with another', async () => {
  const run = async (answers: Record<string, string>) => {
    const tasks = Object.entries(answers).map(([id, answer]) => echo.task(answer, { id, groundTruth: 'yes' }))
    const failing = thrower.task('string', { id: 'fails', groundTruth: 'yes' })
    const responses = await Runners.runTask([...tasks, failing], { ...base, rollouts: 2, grade: exactMatch() })
    return [...responses.values()].map(outcomeOf)
  }
  const before = await run({ a: 'yes', b: 'no', c: 'no' })
  const summary = summarizeOutcomes(before)
  expect(summary).toMatchObject({ tasks: 4, rollouts: 8, solved: 2, unsolved: 6, withoutResult: 0 })
  expect(summary.success).toMatchObject({ value: 1 / 4, tasks: 4, rollouts: 8 })
  expect(summary.gradedSuccess).toMatchObject({ value: 1 / 3, tasks: 3 })
  expect(summary.reward).toMatchObject({ value: 1 / 3, rollouts: 6 })
  expect(summary.failures.agent).toEqual({ TASK_THREW: 2 })
  const comparison = compareRuns(before, await run({ a: 'yes', b: 'yes', d: 'yes' }))
  expect(comparison).toMatchObject({
    ...{ tasks: 3, onlyInA: ['c'], onlyInB: ['d'] },
    flips: { toSolved: ['b'], toUnsolved: [] },
    verdict: expect.stringMatching(/^no significant difference over 3 tasks: B minus A is \+33\.3 points/),
  })
  expect(comparison.usage.runMs!.a).toBeGreaterThan(0)
})
