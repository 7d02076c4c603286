import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { compareRuns, type Outcome } from 'manyworlds/grade'
import { describe, expect, it } from 'vitest'
import { ComparedOutcomes } from '../../src/grade/compare.ts'
import { OutcomeResults } from '../../src/grade/summarize.ts'
import { collectGarbage } from '../support/live-memory.ts'

/** The rollouts of tasks `t0`, `t1`, …: `'110'` is three, the last one unsolved; `-` has no result. */
const run = (...tasks: string[]): Outcome[] =>
  tasks.flatMap((rollouts, at) =>
    [...rollouts].map(
      (rollout): Outcome => ({
        taskId: `t${at}`,
        status: rollout === '-' ? 'cancelled' : 'success',
        ...(rollout === '-' ? {} : { grade: { reward: Number(rollout) } }),
      }),
    ),
  )
const repeat = (rollouts: string, times: number) => Array.from({ length: times }, () => rollouts)

describe('two runs that asked something else', () => {
  const grader = (sha256: string) => ({ name: 'close', sha256 })
  const asked = (count: number, reward: number, more: (at: number) => Partial<Outcome> = () => ({})): Outcome[] =>
    Array.from({ length: count }, (_, at) => ({
      ...{ taskId: `t${at}`, status: 'success', content: `asks ${at}` },
      grade: { reward, grader: grader('a'.repeat(64)) },
      ...more(at),
    }))

  it('get no verdict, and the tasks that differ are named; they are compared anyway if asked', () => {
    const other = asked(60, 1, (at) => (at < 7 ? { content: `asks ${at} instead` } : {}))
    const comparison = compareRuns(asked(60, 0), other)
    expect(comparison).toMatchObject({
      tasks: 60,
      success: null,
      reward: null,
      flips: { toSolved: [], toUnsolved: [] },
    })
    expect(comparison.differs).toEqual({ tasks: ['t0', 't1', 't2', 't3', 't4', 't5', 't6'], graders: [] })
    expect(comparison.verdict).toBe(
      'no verdict: 7 tasks have another input or ground truth: t0, t1, t2, t3, t4 and 2 more',
    )
    const anyway = compareRuns(asked(60, 0), other, { anyway: true })
    expect(anyway.verdict).toMatch(/^B is better by 100\.0 points/)
    expect(anyway.warnings[0]).toMatch(/^compared although 7 tasks have another input/)
  })

  it('or were graded by something else get no verdict either', () => {
    const graded = (sha: string) => ({ grade: { reward: 1, grader: grader(sha.repeat(64)) } })
    const { verdict, differs } = compareRuns(
      asked(60, 0),
      asked(60, 1, () => graded('b')),
      { names: ['old', 'new'] },
    )
    expect(verdict).toBe('no verdict: the grader is close aaaaaaaa in old but close bbbbbbbb in new (60 tasks)')
    expect(differs.graders).toEqual([{ a: 'close aaaaaaaa', b: 'close bbbbbbbb', tasks: 60 }])
    const trusted = asked(60, 1).map(({ grade: _, ...outcome }) => outcome)
    expect(compareRuns(asked(60, 0), trusted).verdict).toContain('close aaaaaaaa in A but no grader in B')
  })

  it('are compared if only failures and pending grades have no grader', () => {
    const failed = asked(60, 1).map((outcome, at): Outcome => {
      const { grade: _, ...rest } = outcome
      if (at === 0) return { ...rest, status: 'failed', code: 'TASK_THREW' }
      const error = { code: 'GRADING_PENDING', message: '' } as const
      return at === 1 ? { ...rest, grade: { reward: null, grader: { name: 'close' }, error } } : outcome
    })
    expect(compareRuns(asked(60, 0), failed)).toMatchObject({ tasks: 59, differs: { tasks: [], graders: [] } })
  })
})

describe('two runs over the same tasks', () => {
  it('differ by what each task gained, with an interval', () => {
    const { success, reward, tasks, verdict } = compareRuns(
      run(...repeat('0', 30), ...repeat('1', 70)),
      run(...repeat('1', 20), ...repeat('0', 10), ...repeat('1', 70)),
    )
    expect(tasks).toBe(100)
    expect(success).toMatchObject({ a: 0.7, b: 0.9, confidence: 0.95, tasks: 100, rollouts: 200 })
    expect(success!.value).toBeCloseTo(0.2, 12)
    expect(success!.low).toBeGreaterThan(0.1)
    expect(success!.high).toBeLessThan(0.3)
    expect(reward).toEqual(success)
    expect(verdict).toMatch(/^B is better by 20\.0 points \(95 % interval 1\d\.\d to 2\d\.\d\)$/)
  })

  // McNemar's exact test: 2 · ½⁶ = .031 < .05, 2 · ½⁵ = .063; 9 of 10 flips: .021; 8 of 10: .109.
  it.each([
    [6, 0, true],
    [5, 0, false],
    [9, 1, true],
    [8, 2, false],
    [17, 5, true],
    [16, 6, false],
  ])('are told apart when McNemar’s exact test does: %d flips for B, %d for A', (forB, forA, told) => {
    const a = run(...repeat('0', forB), ...repeat('1', forA), ...repeat('1', 50))
    const b = run(...repeat('1', forB), ...repeat('0', forA), ...repeat('1', 50))
    const { success, verdict, flips } = compareRuns(a, b)
    expect(success!.low > 0).toBe(told)
    expect(verdict).toMatch(told ? /^B is better by/ : /^no significant difference over \d+ tasks: B minus A is \+/)
    expect([flips.toSolved.length, flips.toUnsolved.length]).toEqual([forB, forA])
    expect(compareRuns(b, a).verdict).toMatch(told ? /^A is better by/ : /^no significant difference/)
  })

  it('have an interval also where nothing changed', () => {
    const { success, verdict } = compareRuns(run(...repeat('1', 50)), run(...repeat('1', 50)))
    expect([success!.low, success!.high]).toEqual([expect.closeTo(-0.071, 3), expect.closeTo(0.071, 3)])
    expect(verdict).toBe('no significant difference over 50 tasks: B minus A is 0.0 points (95 % interval -7.2 to 7.2)')
  })

  it('are called by their names', () => {
    const { verdict } = compareRuns(run(...repeat('1', 10)), run(...repeat('0', 10)), { names: ['old', 'new'] })
    expect(verdict).toMatch(/^old is better by 100\.0 points \(95 % interval 3\d\.\d to 100\.0\)$/)
  })

  it('are paired by task, whatever the order and the number of rollouts', () => {
    const a = run('1100', '0', '11')
    const shuffled = [...run('1', '0011', '1-')].reverse()
    const { success, flips, withoutResult } = compareRuns(a, shuffled)
    expect(success!.value).toBeCloseTo((0.5 + 0.5 + 0) / 3, 12)
    // Half of the rollouts is neither solved nor unsolved.
    expect(flips).toEqual({ toSolved: [], toUnsolved: [] })
    expect(withoutResult).toEqual([])
  })

  it('leave out tasks that only one of them has, and those without a result', () => {
    const a = [...run('1', '1', '-'), { taskId: 'old', status: 'success' } as const]
    const b = [...run('0', '-', '1'), { taskId: 'new', status: 'success' } as const]
    const comparison = compareRuns(a, b)
    expect(comparison).toMatchObject({ tasks: 1, onlyInA: ['old'], onlyInB: ['new'], withoutResult: ['t1', 't2'] })
    expect(comparison.flips.toUnsolved).toEqual(['t0'])
  })

  it('say so where nothing can be compared, or too little', () => {
    expect(compareRuns(run('1'), [])).toMatchObject({
      tasks: 0,
      success: null,
      reward: null,
      verdict: 'nothing to compare: no task has a result in both runs',
    })
    expect(compareRuns(run(...repeat('0', 5)), run(...repeat('1', 5))).warnings).toEqual([
      'at least 6 tasks are needed to detect a difference',
    ])
    expect(compareRuns(run(...repeat('0', 6)), run(...repeat('1', 6))).verdict).toMatch(/^B is better by 100\.0 points/)
  })

  it('count an agent’s failure as unsolved', () => {
    const { flips } = compareRuns(run('1'), [{ taskId: 't0', status: 'timeout', code: 'TASK_TIMEOUT' }])
    expect(flips.toUnsolved).toEqual(['t0'])
  })
})

describe('rewards of two runs', () => {
  const rewards = (...values: number[]): Outcome[] =>
    values.map((reward, at) => ({ taskId: `${at}`, status: 'success', grade: { reward, success: true } }))

  it('are compared apart from success', () => {
    const { success, reward } = compareRuns(rewards(0.2, 0.4, 0.6), rewards(0.4, 0.6, 0.8))
    expect(success!.value).toBe(0)
    expect(reward!.value).toBeCloseTo(0.2, 12)
    expect(reward!.warning).toContain('at least 6 tasks are needed')
  })

  it('get a warning outside of 0 to 1, unless their range is given', () => {
    const [a, b] = [rewards(1, 2, 3, 4, 5, 6), rewards(2, 2.5, 4, 5, 6, 7)]
    expect(compareRuns(a, b).reward!.warning).toContain('rewards from 1 to 7 are outside 0 to 1')
    const ranged = compareRuns(a, b, { rewardRange: [0, 10] }).reward!
    expect(ranged.warning).toBeUndefined()
    expect(ranged.high).toBeLessThan(10)
  })
})

it('tokens, cost and time are means per rollout over tasks that report them in both', () => {
  const used = (taskId: string, costUsd: number | undefined, runMs: number): Outcome => ({
    taskId,
    status: 'success',
    usage: { inputTokens: 10, ...(costUsd === undefined ? {} : { costUsd }) },
    runMs,
  })
  const { usage } = compareRuns(
    [used('a', 1, 100), used('a', 3, 300), used('b', 5, 100)],
    [used('a', 1, 100), used('b', undefined, 500)],
  )
  expect(usage).toEqual({
    inputTokens: { a: 10, b: 10, difference: 0 },
    outputTokens: null,
    cachedTokens: null,
    costUsd: { a: 2, b: 1, difference: -1 },
    runMs: { a: 150, b: 300, difference: 150 },
  })
})

it('swapping the runs mirrors everything', () => {
  const tasks = fc.array(fc.string({ unit: fc.constantFrom('0', '1', '-'), minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 30,
  })
  fc.assert(
    fc.property(tasks, tasks, (left, right) => {
      const [there, back] = [compareRuns(run(...left), run(...right)), compareRuns(run(...right), run(...left))]
      expect(back.onlyInB).toEqual(there.onlyInA)
      expect(back.flips.toUnsolved).toEqual(there.flips.toSolved)
      expect(back.success === null).toBe(there.success === null)
      if (!there.success || !back.success) return
      expect(back.success.low).toBeCloseTo(-there.success.high, 8)
      expect(back.success.value).toBeCloseTo(-there.success.value, 12)
      expect(there.success.high).toBeGreaterThan(there.success.low)
    }),
    { numRuns: 300 },
  )
})

it('outcomes of a large run are not kept when they are added one by one', async () => {
  const [compared, results] = [new ComparedOutcomes(), new OutcomeResults()]
  const added = run('1', '0').map((outcome) => {
    compared.add(outcome)
    results.add(outcome)
    return new WeakRef(outcome)
  })
  // A WeakRef holds its object until the turn of the event loop is over.
  await sleep(0)
  collectGarbage()
  expect(added.map((one) => one.deref())).toEqual([undefined, undefined])
  expect([compared.rows.size, results.summary().solved]).toEqual([2, 1])
})
