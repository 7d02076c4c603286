import { expect, test } from 'vitest'
import { STATES } from '../../src/view/api.ts'
import { neighboursOf } from '../../web/src/parts/task-order.ts'
import { filterOf, rangeQuery, sortOf, sortQuery } from '../../web/src/run/filter-query.ts'
import { Pace } from '../../web/src/run/pace.ts'
import { filterRows } from '../../web/src/run/task-filter.ts'
import { type SortKey, sortRows } from '../../web/src/run/task-sort.ts'
import { TaskTable } from '../../web/src/run/task-table.ts'
import { chunkOf } from './task-chunk.ts'

const [PENDING, RUNNING, SUCCESS, FAILED] = ['pending', 'running', 'success', 'failed'].map((state) =>
  STATES.indexOf(state as never),
)
const NAMES = { agents: new Map([[1, 'zoe'] as const, [2, 'ada'] as const]), workers: new Map() }

const tableOf = (...rows: Parameters<typeof chunkOf>[0]) => {
  const table = new TaskTable()
  table.merge(chunkOf(rows))
  return table
}
const idsFor = (table: TaskTable, query: string) => {
  const search = new URLSearchParams(query)
  const rows = sortRows(table, filterRows(table, filterOf(search)), sortOf(search), NAMES)
  return [...rows].map((row) => table.ids[row]).join(' ')
}

test('a change replaces the row of its task, and new tasks come after the others', () => {
  const table = tableOf({ task: 1, state: PENDING! }, { task: 2, state: PENDING! })
  table.merge(chunkOf([{ task: 3 }, { task: 1, state: FAILED!, cause: 7 }], [{ key: 7, code: 'X', message: 'broken' }]))
  expect(table.ids).toEqual(['t1', 't2', 't3'])
  expect([...table.column('state').slice(0, 3)]).toEqual([FAILED, PENDING, SUCCESS])
  expect(table.causes.get(table.value('cause', 0)!)).toMatchObject({ code: 'X' })
})

test('a column counts as empty until a task has a value in it', () => {
  const table = tableOf({ task: 1 })
  expect(table.has('reward')).toBe(false)
  table.merge(chunkOf([{ task: 1, reward: 0 }]))
  expect(table.has('reward')).toBe(true)
  expect(table.value('reward', 0)).toBe(0)
})

test('more rows than fit at first are kept', () => {
  const table = tableOf(...Array.from({ length: 5000 }, (_, place) => ({ task: place + 1, runMs: place })))
  expect(table.value('runMs', 0)).toBe(0)
  expect(table.value('runMs', 4999)).toBe(4999)
})

test('filters by state, agent, cause, solved, id and ranges; sub-tasks only on demand', () => {
  const table = tableOf(
    { task: 1, state: FAILED!, agent: 2, cause: 4, id: 'Alpha' },
    { task: 2, runMs: 10, solved: 1 },
    { task: 3, runMs: 20, solved: 0 },
    { task: 4, parent: 3, runMs: 10 },
  )
  expect(idsFor(table, '')).toBe('Alpha t2 t3')
  expect(idsFor(table, 'sub=1')).toBe('Alpha t2 t3 t4')
  expect(idsFor(table, 'state=failed,crashed')).toBe('Alpha')
  expect(idsFor(table, 'agent=2')).toBe('Alpha')
  expect(idsFor(table, 'cause=4')).toBe('Alpha')
  expect(idsFor(table, 'solved=no')).toBe('t3')
  expect(idsFor(table, 'solved=none')).toBe('Alpha')
  expect(idsFor(table, 'id=LPH')).toBe('Alpha')
  expect(idsFor(table, `runMs=${rangeQuery({ low: 10, high: 20 })}`)).toBe('t2')
  expect(idsFor(table, `runMs=${rangeQuery({ low: -Infinity, high: Infinity })}`)).toBe('t2 t3')
})

test('sorts numbers and texts both ways; tasks without a value come last, equal ones in the order of the run', () => {
  const table = tableOf(
    { task: 1, id: 'b-10', runMs: 5, reward: -1 },
    { task: 2, id: 'b-9', runMs: null, reward: 0.5 },
    { task: 3, id: 'a-9', runMs: 5, agent: 2, reward: 0 },
    { task: 4, id: 'B-9b', runMs: 1e9, reward: -3 },
  )
  expect(idsFor(table, 'sort=runMs')).toBe('b-10 a-9 B-9b b-9')
  expect(idsFor(table, 'sort=-runMs')).toBe('B-9b b-10 a-9 b-9')
  expect(idsFor(table, 'sort=reward')).toBe('B-9b b-10 a-9 b-9')
  expect(idsFor(table, 'sort=id')).toBe('a-9 b-9 B-9b b-10')
  expect(idsFor(table, 'sort=agent')).toBe('a-9 b-10 b-9 B-9b')
  expect(idsFor(table, 'sort=-task')).toBe('B-9b a-9 b-9 b-10')
})

test('sorts as a plain sort does, whatever the numbers', () => {
  const values = Array.from({ length: 3000 }, (_, place) => {
    const size = 10 ** ((place % 40) - 20)
    return place % 7 === 0 ? null : Math.sin(place * 7919) * size
  })
  const table = tableOf(...values.map((reward, place) => ({ task: place + 1, reward })))
  const expected = [...values.keys()].sort((a, b) => {
    const [x, y] = [values[a] ?? Infinity, values[b] ?? Infinity]
    return x < y ? -1 : x > y ? 1 : a - b
  })
  expect(idsFor(table, 'sort=reward')).toBe(expected.map((row) => `t${row + 1}`).join(' '))
})

test('the address keeps the order', () => {
  for (const key of ['task', 'id', 'runMs'] as SortKey[])
    for (const isDescending of [false, true]) {
      const query = new URLSearchParams({ sort: sortQuery({ key, isDescending }) ?? '' })
      expect(sortOf(query)).toEqual({ key, isDescending })
    }
})

test('steps to the next failure in the order that is shown', () => {
  const table = tableOf(
    { task: 1, state: FAILED!, runMs: 3 },
    { task: 2, runMs: 2 },
    { task: 3, solved: 0, runMs: 1 },
    { task: 4, state: FAILED!, runMs: 0 },
  )
  const rows = sortRows(
    table,
    filterRows(table, filterOf(new URLSearchParams())),
    sortOf(new URLSearchParams('sort=runMs')),
    NAMES,
  )
  const order = { run: 'r', table, rows }
  expect(neighboursOf(order, 't2')).toEqual({
    ...{ position: 2, count: 4, previous: 't3', next: 't1' },
    ...{ previousFailure: 't3', nextFailure: 't1' },
  })
  expect(neighboursOf(order, 't4')).toMatchObject({
    previous: undefined,
    previousFailure: undefined,
    nextFailure: 't3',
  })
  expect(neighboursOf(order, 'unknown')).toMatchObject({ position: undefined, nextFailure: 't4' })
})

test('a page that was just opened knows the rate and the remaining time from the ends of the tasks', () => {
  const overview = (success: number, total?: number) =>
    ({ counts: { success, failed: 0, timeout: 0, crashed: 0, cancelled: 0 }, ...(total && { total }) }) as never
  // An earlier session did ten tasks at once; since 1,000 s, a task ends every 10 s. Sub-tasks do not count.
  const ended = (task: number) => (task <= 10 ? 5000 : 1_000_000 + 10_000 * (task - 10))
  const rows = Array.from({ length: 40 }, (_, at) => ({ task: at + 1, endedAt: ended(at + 1) }))
  const table = tableOf(
    ...rows,
    { task: 90, state: RUNNING! },
    ...[91, 92].map((task) => ({ task, parent: 40, endedAt: 1_299_000 })),
  )
  const pace = new Pace(table, 1_000_000)
  // What was told first is older than the rows.
  pace.told(overview(38, 100))
  const now = pace.now(overview(40, 100), table.running(), 1_305_000)
  expect(now.perSecond).toBeCloseTo(0.1, 2)
  expect(now.remainingMs! / 60_000).toBeCloseTo(10, 0)
  // Ten times as fast from now on: the rate follows.
  for (let more = 1; more <= 100; more++) {
    pace.told(overview(40 + more, 400))
    pace.now(overview(40 + more, 400), 1, 1_305_000 + 1000 * more)
  }
  expect(pace.now(overview(140, 400), 1, 1_405_000).perSecond).toBeGreaterThan(0.3)
  // Too little is known: no time is better than a wrong one.
  expect(pace.now(overview(40), 1, 1_405_000).remainingMs).toBeUndefined()
  expect(new Pace(table, 2_000_000).now(overview(42, 100), 1, 2_060_000)).toEqual({})
  const few = tableOf(...rows.slice(0, 13))
  expect(new Pace(few, 1_000_000).now(overview(13, 100), 1, 1_030_000).remainingMs).toBeUndefined()
})
