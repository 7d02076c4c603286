import fc from 'fast-check'
import { atLeast, blameFor, type Outcome, outcomeOf, summarizeOutcomes, tasksNeeded } from 'manyworlds/grade'
import { describe, expect, it } from 'vitest'
import { TaskError, type TaskErrorCode } from '../../src/errors.ts'
import { describeRate, describeReward } from '../../src/grade/words.ts'

const solved = (taskId: string): Outcome => ({ taskId, status: 'success', grade: { reward: 1, success: true } })
const wrong = (taskId: string): Outcome => ({ taskId, status: 'success', grade: { reward: 0, success: false } })
const failed = (taskId: string, code: TaskErrorCode): Outcome => ({ taskId, status: 'failed', code })

describe('the headline', () => {
  it('counts what the agent did as unsolved, and leaves out what happened to it', () => {
    const summary = summarizeOutcomes([
      solved('a'),
      wrong('b'),
      { taskId: 'c', status: 'timeout', code: 'TASK_TIMEOUT' },
      { taskId: 'd', status: 'crashed', code: 'WORKER_CRASHED' },
      { taskId: 'e', status: 'cancelled', code: 'TASK_CANCELLED' },
      { taskId: 'f', status: 'not-run' },
      {
        taskId: 'g',
        status: 'success',
        grade: { reward: null, success: null, error: { code: 'GRADER_TIMEOUT', message: 'it took longer than 10 s' } },
      },
      { taskId: 'h', status: 'success', grade: { reward: null } },
      failed('i', 'REQUIRES_UNMET'),
    ])
    expect(summary).toMatchObject({ tasks: 9, rollouts: 9, solved: 1, unsolved: 3, withoutResult: 5 })
    expect(summary.success).toMatchObject({ value: 1 / 4, tasks: 4 })
    expect(summary.gradedSuccess).toMatchObject({ value: 1 / 2, tasks: 2 })
    expect(summary.reward).toMatchObject({ value: 1 / 2, tasks: 2 })
    expect(summary.failures).toEqual({
      agent: { TASK_TIMEOUT: 1, WORKER_CRASHED: 1 },
      infrastructure: { TASK_CANCELLED: 1, NOT_RUN: 1, GRADER_TIMEOUT: 1, NOT_GRADED: 1, REQUIRES_UNMET: 1 },
    })
    expect(summary.unsolvedTasks).toEqual([
      { id: 'b', solved: 0, rollouts: 1, reasons: [] },
      { id: 'c', solved: 0, rollouts: 1, reasons: ['TASK_TIMEOUT'] },
      { id: 'd', solved: 0, rollouts: 1, reasons: ['WORKER_CRASHED'] },
    ])
    expect(summary.warnings).toEqual([
      '5 of 9 rollouts have no result; unless that was random, the figures are biased',
      'the mean reward excludes 2 rollouts that failed before grading',
    ])
  })

  it.each<[TaskErrorCode, 'agent' | 'infrastructure']>([
    ['TASK_THREW', 'agent'],
    ['UNCAUGHT_IN_TASK', 'agent'],
    ['ANSWER_NOT_SERIALIZABLE', 'agent'],
    ['SETUP_FAILED', 'agent'],
    ['ALL_SUBAGENTS_FAILED', 'agent'],
    ['TASK_TIMEOUT', 'agent'],
    ['TASK_BLOCKED_WORKER', 'agent'],
    ['WORKER_CRASHED', 'agent'],
    ['PROCESS_EXIT', 'agent'],
    ['ACTION_INVALID', 'agent'],
    ['ENVIRONMENT_FAULT', 'infrastructure'],
    ['MODEL_INVALID_REQUEST', 'infrastructure'],
    ['MODEL_CONTEXT_LENGTH', 'agent'],
    ['WORLD_UNAVAILABLE', 'infrastructure'],
    ['WORLD_FAILED', 'agent'],
    ['WORLD_CRASHED', 'agent'],
    ['WORLD_TIMEOUT', 'agent'],
    ['WORLD_NOT_DETERMINISTIC', 'infrastructure'],
    ['WORLD_DISCONNECTED', 'infrastructure'],
    ['REQUIRES_UNMET', 'infrastructure'],
    ['TASK_CANCELLED', 'infrastructure'],
    ['RUN_DEADLINE', 'infrastructure'],
    ['RUN_BUDGET', 'infrastructure'],
    ['DEPENDENCY_FAILED', 'infrastructure'],
  ])('charges %s to the %s', (code, blame) => {
    expect(blameFor('failed', code)).toBe(blame)
  })

  it('goes by the status where a newer version wrote the code', () => {
    expect(blameFor('crashed', 'SOMETHING_NEW')).toBe('agent')
    expect(blameFor('cancelled', 'SOMETHING_NEW')).toBe('infrastructure')
    expect(blameFor('failed', 'constructor')).toBe('agent')
  })

  it('lets a runtime that knows better override the blame', () => {
    const lost: Outcome = { taskId: 'a', status: 'crashed', code: 'WORKER_CRASHED', blame: 'infrastructure' }
    expect(summarizeOutcomes([lost])).toMatchObject({ withoutResult: 1, success: null })
  })

  it('lets a grade count whatever the status: an episode that was cut short was graded', () => {
    expect(summarizeOutcomes([{ ...solved('a'), status: 'timeout', code: 'TASK_TIMEOUT' }])).toMatchObject({
      solved: 1,
    })
  })

  it('takes full marks for solved where the grader does not say', () => {
    const graded = (reward: number): Outcome => ({ taskId: `${reward}`, status: 'success', grade: { reward } })
    expect(summarizeOutcomes([graded(0.7 + 0.2 + 0.1), graded(0.99), graded(-1), graded(2)])).toMatchObject({
      solved: 2,
      unsolved: 2,
    })
  })

  it('is the success of responses where nobody grades', () => {
    const summary = summarizeOutcomes([{ taskId: 'a', status: 'success' }, failed('b', 'TASK_THREW')])
    expect(summary).toMatchObject({ solved: 1, unsolved: 1, gradedSuccess: null, reward: null, warnings: [] })
  })

  it('warns where some were graded and others not', () => {
    const { warnings } = summarizeOutcomes([{ taskId: 'a', status: 'success' }, wrong('b'), wrong('c')])
    expect(warnings).toEqual(['1 rollout without a grade counts as solved, because it did not fail'])
  })

  it('is empty for no outcomes', () => {
    expect(summarizeOutcomes([])).toMatchObject({ tasks: 0, success: null, reward: null, passAt: {}, warnings: [] })
  })
})

describe('several rollouts', () => {
  it('give pass@k for 2, 4, … unless told otherwise', () => {
    const outcomes = ['a', 'b', 'c'].flatMap((id) => [solved(id), wrong(id), wrong(id), wrong(id), wrong(id)])
    const summary = summarizeOutcomes(outcomes)
    expect(Object.keys(summary.passAt)).toEqual(['2', '4'])
    expect(summary.passAt[4]!.value).toBeCloseTo(0.8, 12)
    expect(Object.keys(summarizeOutcomes(outcomes, { passAt: [3] }).passAt)).toEqual(['3'])
    expect(summary.unsolvedTasks[0]).toMatchObject({ id: 'a', solved: 1, rollouts: 5 })
  })

  it('list the worst task first', () => {
    const outcomes = [wrong('half'), solved('half'), wrong('never'), wrong('never'), solved('always'), solved('always')]
    expect(summarizeOutcomes(outcomes).unsolvedTasks.map(({ id }) => id)).toEqual(['never', 'half'])
  })
})

describe('by metadata', () => {
  const tagged = (taskId: string, tag: unknown, ok: boolean): Outcome => ({
    ...(ok ? solved(taskId) : wrong(taskId)),
    metadata: { tag },
  })

  it('gives the figures of each value', () => {
    const summary = summarizeOutcomes(
      [tagged('a', 2, true), tagged('b', 10, false), tagged('c', 2, false), tagged('d', undefined, true), solved('e')],
      { groupBy: 'tag' },
    )
    expect(summary.tasks).toBe(5)
    expect(Object.keys(summary.groups!)).toEqual(['2', '10', '(none)'])
    expect(summary.groups!['2']).toMatchObject({ tasks: 2, solved: 1 })
    expect(summary.groups!['(none)']).toMatchObject({ tasks: 2, solved: 2 })
  })

  it('counts a task with a list of tags for each of them', () => {
    const { groups } = summarizeOutcomes([tagged('a', ['x', 'y', 'x'], true), tagged('b', [], true)], {
      groupBy: 'tag',
    })
    expect(Object.entries(groups!).map(([name, { tasks }]) => [name, tasks])).toEqual([
      ['(none)', 1],
      ['x', 1],
      ['y', 1],
    ])
  })

  it('survives tags that are names of JavaScript', () => {
    const { groups } = summarizeOutcomes([tagged('a', '__proto__', true), tagged('b', 'constructor', true)], {
      groupBy: 'tag',
    })
    expect(Object.keys(groups!).toSorted()).toEqual(['__proto__', 'constructor'])
    const { failures } = summarizeOutcomes([{ taskId: 'a', status: 'failed', code: '__proto__' }])
    expect(Object.entries(failures.agent)).toEqual([['__proto__', 1]])
  })

  it('refuses a key that every task has another value for', () => {
    const outcomes = Array.from({ length: 1001 }, (_, at) => tagged(`${at}`, at, true))
    expect(() => summarizeOutcomes(outcomes, { groupBy: 'tag' })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining("'tag'") }),
    )
  })
})

it('every rollout is counted exactly once, whatever happened to it', () => {
  const outcome = fc.record(
    {
      taskId: fc.constantFrom('a', 'b', 'c', 'd'),
      status: fc.constantFrom('success', 'failed', 'timeout', 'crashed', 'cancelled', 'not-run' as const),
      code: fc.constantFrom('TASK_THREW', 'TASK_CANCELLED', 'NEW'),
      grade: fc.record(
        {
          reward: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
          success: fc.option(fc.boolean()),
          error: fc.constant({ code: 'GRADER_THREW', message: 'no' }),
        },
        { requiredKeys: ['reward'] },
      ),
    },
    { requiredKeys: ['taskId', 'status'] },
  ) as fc.Arbitrary<Outcome>
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 40 }), (outcomes) => {
      const summary = summarizeOutcomes(outcomes)
      expect(summary.solved + summary.unsolved + summary.withoutResult).toBe(outcomes.length)
      expect(summary.success?.rollouts ?? 0).toBe(summary.solved + summary.unsolved)
      expect(Object.values(summary.failures.infrastructure).reduce((a, b) => a + b, 0)).toBe(summary.withoutResult)
    }),
    { numRuns: 300 },
  )
})

it('a response becomes an outcome', () => {
  const outcome = outcomeOf({
    id: 'a@2',
    rollout: 2,
    status: 'timeout',
    error: new TaskError('TASK_TIMEOUT', 'it ran longer than 5 s'),
    usage: { inputTokens: 5 },
    timing: { runMs: 7 },
  })
  expect(outcome).toEqual({
    taskId: 'a',
    status: 'timeout',
    code: 'TASK_TIMEOUT',
    usage: { inputTokens: 5 },
    runMs: 7,
  })
})

it('rollouts belong to their task, whatever else its id looks like', () => {
  expect(outcomeOf({ id: 'a@2', status: 'success' }).taskId).toBe('a@2')
  expect(outcomeOf({ id: 'a', rollout: 1, status: 'success' }).taskId).toBe('a')
  expect(outcomeOf({ id: 'a@3', rollout: 3, status: 'success' }).taskId).toBe('a')
})

describe('a threshold', () => {
  const run = (good: number, bad: number) =>
    summarizeOutcomes([
      ...Array.from({ length: good }, (_, at) => solved(`good-${at}`)),
      ...Array.from({ length: bad }, (_, at) => wrong(`bad-${at}`)),
    ])

  it('is passed only if the one-sided bound is above it', () => {
    // 0.9 ** 29 = 0.047: 29 tasks, all solved, happen in one of twenty runs if the rate is 0.9.
    expect(atLeast(run(29, 0), 0.9)).toEqual({
      passed: true,
      lines: [
        'at least 90.0 % of tasks are solved, with 95 % confidence',
        'solved 29 of 29 rollouts of 29 tasks: 100.0 % (95 % interval 88.0 to 100.0)',
      ],
    })
    expect(run(29, 0).successAtLeast).toBeCloseTo(0.05 ** (1 / 29), 9)
    expect(tasksNeeded(0.9, 0.95)).toBe(29)
    expect(atLeast(run(28, 0), 0.9)).toEqual({
      passed: false,
      lines: [
        'expected at least 90.0 % of tasks to be solved, with 95 % confidence; the results show at least 89.8 %',
        'solved 28 of 28 rollouts of 28 tasks: 100.0 % (95 % interval 87.6 to 100.0)',
        '28 tasks cannot show this even if all are solved: at least 29 tasks are needed',
      ],
    })
  })

  it('is not passed if more than 2 % of the rollouts have no result, and it says which and why', () => {
    const missing = (count: number) =>
      summarizeOutcomes([
        ...Array.from({ length: 200 - count }, (_, at) => solved(`good-${at}`)),
        ...Array.from({ length: count }, (_, at) => failed(`lost-${at}`, 'MODEL_INVALID_REQUEST')),
      ])
    expect(atLeast(missing(4), 0.9).passed).toBe(true)
    expect(atLeast(missing(100), 0.9)).toEqual({
      passed: false,
      lines: [
        '100 of 200 rollouts have no result, more than 2.0 % (maxUngraded): the others may not be like all',
        'solved 100 of 100 rollouts of 200 tasks, 100 with a result: 100.0 % (95 % interval 96.3 to 100.0)',
        expect.stringMatching(
          /^not counted: 100 rollouts without a result: 100 MODEL_INVALID_REQUEST; of lost-0, .* and 80 more$/,
        ),
      ],
    })
    expect(atLeast(missing(100), 0.9, { maxUngraded: 0.5 }).passed).toBe(true)
    expect(() => atLeast(missing(0), 0.9, { maxUngraded: 2 })).toThrow('`maxUngraded` must be a number from 0 to 1')
  })

  it('names what was not solved, and what does not count', () => {
    const { passed, lines } = atLeast(
      summarizeOutcomes([
        ...Array.from({ length: 90 }, (_, at) => solved(`t${at}`)),
        ...Array.from({ length: 25 }, (_, at) => wrong(`bad\u001b[31m-${at}`)),
        failed('t0', 'TASK_THREW'),
        { taskId: 'x', status: 'not-run' },
      ]),
      0.9,
    )
    expect(passed).toBe(false)
    expect(lines[2]).toMatch(/^unsolved: bad\\x1b\[31m-0, .* and 6 more$/)
    expect(lines[3]).toBe('not counted: 1 rollout without a result: 1 NOT_RUN; of x')
  })

  it('is not passed by nothing', () => {
    expect(atLeast(summarizeOutcomes([]), 0.9)).toMatchObject({ passed: false })
  })

  it.each([0, 1, 1.5, 90, Number.NaN])('of %d is refused', (rate) => {
    expect(() => atLeast(run(1, 0), rate)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })
})

it('figures are written with their interval, rounded outwards', () => {
  const estimate = { value: 0.8234, low: 0.70199, high: 0.90201, confidence: 0.95, tasks: 50, rollouts: 50 }
  expect(describeRate(estimate)).toBe('82.3 % (95 % interval 70.1 to 90.3)')
  expect(describeReward({ ...estimate, low: Number.NEGATIVE_INFINITY, confidence: 0.999 })).toBe(
    '0.823 (99.9 % interval -∞ to 0.903)',
  )
})
