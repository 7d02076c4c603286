import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { combined } from '../../src/progress/combined.ts'
import { Percentiles } from '../../src/progress/percentiles.ts'
import { finishedTask, Tally } from '../../src/progress/tally.ts'
import { response } from './made-up.ts'

/** A tally and the clock it looks at. */
function tallyAt0(total?: number, running = 0) {
  const clock = { ms: 0 }
  return { clock, tally: new Tally({ runId: 'run', total, running: () => running }, () => clock.ms) }
}

describe('percentiles', () => {
  it('are within 1 % of the exact ones, whatever the durations', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.002, max: 1e8, noNaN: true }), { minLength: 1, maxLength: 300 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (durations, share) => {
          const percentiles = new Percentiles()
          for (const ms of durations) percentiles.add(ms)
          const exact = durations.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * durations.length)) - 1]!
          expect(Math.abs(percentiles.at(share) / exact - 1)).toBeLessThan(0.01001)
          expect(percentiles.max).toBe(Math.max(...durations))
        },
      ),
    )
  })

  it('know zero, and durations beyond all measure', () => {
    const percentiles = new Percentiles()
    for (const ms of [0, 0, 0, 1e12]) percentiles.add(ms)
    expect(percentiles.at(0.5)).toBe(0)
    expect(percentiles.max).toBe(1e12)
    expect(percentiles.at(1)).toBeGreaterThan(1e8)
  })
})

describe('a tally', () => {
  it('groups failures by code and message, apart from numbers and ids', () => {
    const { tally } = tallyAt0()
    for (let i = 1; i <= 6; i++)
      tally.add(
        finishedTask(response(`t${i}`, { status: 'failed', message: i % 3 === 0 ? 'no disk' : `page ${i} is blank` })),
      )
    tally.add(finishedTask(response('t7', { status: 'failed', code: 'UNCAUGHT_IN_TASK', message: 'no disk' })))
    expect(tally.snapshot().failures).toEqual([
      { code: 'TASK_THREW', count: 4, example: { id: 't1', message: 'page 1 is blank' } },
      { code: 'TASK_THREW', count: 2, example: { id: 't3', message: 'no disk' } },
      { code: 'UNCAUGHT_IN_TASK', count: 1, example: { id: 't7', message: 'no disk' } },
    ])
    const word = (i: number) => String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26))
    for (let i = 0; i < 300; i++) tally.add(finishedTask(response(`u${i}`, { status: 'failed', message: word(i) })))
    const { failures } = tally.snapshot()
    expect(failures).toHaveLength(101)
    expect(failures[0]).toMatchObject({ code: 'OTHER', count: 300 - 97 })
  })

  it('counts by status, and keeps the first failure of each cause', () => {
    const { tally } = tallyAt0(10)
    tally.add(finishedTask(response('a')))
    tally.add(finishedTask(response('b', { status: 'failed', message: 'first' })))
    tally.add(finishedTask(response('c', { status: 'timeout', code: 'TASK_TIMEOUT', message: 'slow' })))
    tally.add(finishedTask(response('d', { status: 'timeout', code: 'TASK_TIMEOUT', message: 'slow' })))
    tally.retried()
    expect(tally.snapshot()).toMatchObject({
      total: 10,
      done: 4,
      retries: 1,
      counts: { success: 1, failed: 1, timeout: 2, crashed: 0, cancelled: 0 },
      failures: [
        { code: 'TASK_TIMEOUT', count: 2, example: { id: 'c', message: 'slow' } },
        { code: 'TASK_THREW', count: 1, example: { id: 'b', message: 'first' } },
      ],
    })
  })

  it('keeps the five slowest, slowest first', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { maxLength: 50 }), (times) => {
        const { tally } = tallyAt0()
        for (const runMs of times) tally.add({ id: 'a', status: 'success', runMs })
        const slowest = times.toSorted((a, b) => b - a).slice(0, 5)
        expect(tally.snapshot().slowest.map(({ runMs }) => runMs)).toEqual(slowest)
      }),
    )
  })

  it('leaves restored tasks, and those that never ran, out of times and rates', () => {
    const { clock, tally } = tallyAt0(2000)
    for (let i = 0; i < 1000; i++) tally.add({ id: `${i}`, status: 'success', runMs: 5000, restored: true })
    clock.ms = 4000
    tally.add({ id: 'last restored', status: 'success', runMs: 5000, restored: true })
    tally.add({ id: 'never ran', status: 'cancelled', code: 'TASK_CANCELLED', runMs: 0 })
    tally.add({ id: 'died', status: 'crashed', code: 'WORKER_CRASHED', runMs: 0 })
    expect(tally.snapshot()).toMatchObject({
      done: 1002,
      restored: 1001,
      runMs: undefined,
      slowest: [],
      perSecond: undefined,
    })
    for (; clock.ms < 14_000; clock.ms += 100) tally.add({ id: 'ran', status: 'success', runMs: 100 })
    expect(tally.snapshot().perSecond).toBeCloseTo(10, 0)
    expect(tally.snapshot().runMs).toMatchObject({ max: 100 })
  })
})

describe('the evaluation of a tally', () => {
  const grade = { reward: 1, success: true, grader: { name: 'exact' } }

  it('has tasks that never ran, and answers without a grade from before the first grade', () => {
    const { tally } = tallyAt0(4)
    tally.add(finishedTask(response('on trust')))
    expect(tally.evaluation()).toBeUndefined()
    tally.add({ id: 'graded', status: 'success', runMs: 1, outcome: { taskId: 'graded', status: 'success', grade } })
    const stopped = { status: 'cancelled', code: 'RUN_DEADLINE', runMs: 5 } as const
    tally.add(finishedTask(response('stopped', stopped)))
    tally.notRun(response('never started', stopped))
    expect(tally.evaluation()).toMatchObject({ tasks: 4, solved: 2, withoutResult: 2 })
    expect(tally.snapshot()).toMatchObject({ done: 2, counts: { success: 2, cancelled: 1 } })
  })
})

describe('rate and ETA', () => {
  it('follow a steady run closely', () => {
    const { clock, tally } = tallyAt0(10_000, 8)
    for (let i = 0; i < 5000; i++) {
      clock.ms += 10
      tally.add({ id: `${i}`, status: 'success', runMs: 80 })
    }
    const { perSecond, etaMs } = tally.snapshot()
    expect(perSecond).toBeCloseTo(100, 1)
    expect(etaMs! / 1000).toBeCloseTo(50, 1)
  })

  it('say no remaining time while a run is being stopped', () => {
    let stopping = false
    const clock = { ms: 0 }
    const tally = new Tally({ runId: 'run', total: 1000, stopping: () => stopping }, () => clock.ms)
    for (let i = 0; i < 500; i++) {
      clock.ms += 10
      tally.add({ id: `${i}`, status: 'success', runMs: 80 })
    }
    expect(tally.snapshot().etaMs).toBeDefined()
    stopping = true
    expect(tally.snapshot().etaMs).toBeUndefined()
  })

  it('do not depend on how often they are read', () => {
    const [seldom, often] = [tallyAt0(1000), tallyAt0(1000)]
    for (let i = 0; i < 300; i++) {
      for (const { clock, tally } of [seldom, often]) {
        clock.ms += 50
        tally.add({ id: `${i}`, status: 'success', runMs: 1 })
      }
      often.tally.snapshot()
    }
    expect(seldom.tally.snapshot().perSecond).toBeCloseTo(often.tally.snapshot().perSecond!, 1)
  })

  it('do not jump when long tasks finish one at a time', () => {
    const { clock, tally } = tallyAt0(1000, 2)
    let before: number | undefined
    for (let i = 0; i < 200; i++) {
      for (let second = 0; second < 60; second++) {
        clock.ms += 1000
        const { perSecond } = tally.snapshot()
        if (i > 30) expect(Math.abs(perSecond! / before! - 1)).toBeLessThan(0.25)
        before = perSecond
      }
      tally.add({ id: `${i}`, status: 'success', runMs: 60_000 })
    }
  })

  it('notice within half a minute that a run has become slower', () => {
    const { clock, tally } = tallyAt0(100_000)
    const second = (tasks: number) => {
      for (let i = 0; i < tasks; i++) tally.add({ id: 'x', status: 'success', runMs: 1 })
      clock.ms += 1000
      tally.snapshot()
    }
    for (let i = 0; i < 60; i++) second(100)
    for (let i = 0; i < 30; i++) second(10)
    expect(tally.snapshot().perSecond).toBeLessThan(20)
  })

  it('are not given before they can be known', () => {
    const { clock, tally } = tallyAt0(1000, 64)
    clock.ms = 5000
    expect(tally.snapshot()).toMatchObject({ perSecond: undefined, etaMs: undefined })
    // The first of 64 that run: nobody knows what the others will take.
    for (let i = 0; i < 10; i++) tally.add({ id: `${i}`, status: 'success', runMs: 10 })
    clock.ms = 6000
    expect(tally.snapshot().etaMs).toBeUndefined()
    for (let i = 0; i < 60; i++) tally.add({ id: `${i}`, status: 'success', runMs: 10 })
    clock.ms = 7000
    expect(tally.snapshot().etaMs).toBeGreaterThan(1000)
    // Everything hangs: rather no time than one that is never kept.
    clock.ms += 7 * 24 * 3_600_000
    expect(tally.snapshot().etaMs).toBeUndefined()
  })

  it('end with the last task', () => {
    const { clock, tally } = tallyAt0(50)
    for (let i = 0; i < 50; i++) {
      clock.ms += 100
      tally.add({ id: `${i}`, status: 'success', runMs: 10 })
    }
    expect(tally.snapshot()).toMatchObject({ done: 50, etaMs: undefined })
  })
})

it('several runs are shown as one; what is not known of one is not known', () => {
  const runs = [tallyAt0(10), tallyAt0(20)].map(({ tally }) => {
    tally.add({ id: 'a', status: 'success', runMs: 1 })
    return tally.snapshot()
  })
  expect(combined(runs)).toMatchObject({ total: 30, done: 2, succeeded: 2, perSecond: undefined, etaMs: undefined })
  expect(combined([runs[0]!, { ...runs[1]!, total: undefined }]).total).toBeUndefined()
})

it('runs that share the queue of a model do not make it longer', () => {
  const run = (...queues: (readonly [string, number])[]) =>
    new Tally({
      runId: 'r',
      models: { waiting: queues.map(([model, queued]) => ({ model, queued, perSecond: 2 })), used: [] },
    }).snapshot()
  const { waiting } = combined([run(['small', 7], ['big', 9]), run(['small', 8])])
  expect(waiting.map(({ model, queued }) => [model, queued])).toEqual([
    ['big', 9],
    ['small', 8],
  ])
})
