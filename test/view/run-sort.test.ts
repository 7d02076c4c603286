import { expect, test } from 'vitest'
import type { RunEntry, RunFigures } from '../../src/view/api.ts'
import { figureKeysOf, runSortOf, runSortQuery, sortRuns } from '../../web/src/runs/run-sort.ts'

const run = (runId: string, startedAt: number, more: object = {}) =>
  ({
    runId,
    startedAt,
    elapsedMs: 10 * startedAt,
    status: 'finished',
    counts: { success: 1 },
    ...more,
  }) as never as RunEntry

/** The newest first, as the server sends them. */
const RUNS = [
  run('run-10', 4, { status: 'running', counts: { success: 3, failed: 4 } }),
  { runId: 'broken', problem: 'not a store' },
  run('run-9', 3),
  run('b', 2, { status: 'died', engineName: 'ray' }),
  run('a', 1, { elapsedMs: 99 }),
]
const FIGURES: Readonly<Record<string, RunFigures>> = {
  'run-10': { usage: { inputTokens: 5 } },
  'run-9': { usage: { outputTokens: 7, costUsd: 0 }, success: { value: 0.5, low: 0, high: 1 } },
  a: { usage: {}, success: { value: 0.25, low: 0, high: 1 } },
}

const idsFor = (sort: string) =>
  sortRuns(RUNS, runSortOf(new URLSearchParams({ sort })), (id) => FIGURES[id])
    .map(({ runId }) => runId)
    .join(' ')

test('runs are sorted by each column; without a value they come last, and equal ones stay the newest first', () => {
  expect(idsFor('')).toBe('run-10 broken run-9 b a')
  expect(idsFor('started')).toBe('a b run-9 run-10 broken')
  expect(idsFor('id')).toBe('a b run-9 run-10 broken')
  expect(idsFor('-id')).toBe('run-10 run-9 b a broken')
  expect(idsFor('state')).toBe('run-10 b run-9 a broken')
  expect(idsFor('-tasks')).toBe('run-10 run-9 b a broken')
  expect(idsFor('-time')).toBe('a run-10 run-9 b broken')
  expect(idsFor('engine')).toBe('b run-10 broken run-9 a')
  expect(idsFor('-success')).toBe('run-9 a run-10 broken b')
  expect(idsFor('success')).toBe('a run-9 run-10 broken b')
  expect(idsFor('tokens')).toBe('run-10 run-9 broken b a')
  expect(idsFor('cost')).toBe('run-9 run-10 broken b a')
})

test('the address keeps the order, and an unknown one is the newest first', () => {
  const read = (sort: string) => runSortQuery(runSortOf(new URLSearchParams({ sort })))
  expect(['cost', '-cost', 'started'].map(read)).toEqual(['cost', '-cost', 'started'])
  expect(['', '-started', 'nothing', '-'].map(read)).toEqual(Array(4).fill(undefined))
})

test('a column has a value if any run has one, a zero included', () => {
  expect(figureKeysOf(FIGURES['run-9']!)).toEqual(['success', 'tokens', 'cost'])
  expect(figureKeysOf({ usage: {} })).toEqual([])
})
