import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { doubler, equals, gambler } from '../agents/graded.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { refused } from '../support/refused.ts'

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 2, concurrency: 8 } as const

it('every task runs so many times, as one group with ids that stay', async () => {
  const tasks = [doubler.task(1, { id: 'a', metadata: { m: 1 } }), doubler.task(2)]
  const responses = await Runners.runTask(tasks, { ...base, rollouts: 3 })
  expect([...responses.keys()]).toEqual(['a', 'a@2', 'a@3', '#2', '#2@2', '#2@3'])
  expect([...responses.values()].map(({ groupId, rollout, answer }) => [groupId, rollout, answer])).toEqual([
    ['a', 1, 2],
    ['a', 2, 2],
    ['a', 3, 2],
    ['#2', 1, 4],
    ['#2', 2, 4],
    ['#2', 3, 4],
  ])
})

it('rollouts draw numbers of their own, the first those of a run without rollouts', async () => {
  const task = gambler.task(0, { id: 'g' })
  const draws = async (rollouts?: number) => {
    const responses = await Runners.runTask([task], { ...base, seed: 7, ...(rollouts && { rollouts }) })
    return [...responses.values()].map(({ answer }) => answer!.draws[0])
  }
  const [alone, four, again] = [await draws(), await draws(4), await draws(4)]
  expect(four[0]).toBe(alone[0])
  expect(new Set(four).size).toBe(4)
  expect(again).toEqual(four)
})

it('a run is resumed with more rollouts, also one that had none, and never with fewer', async () => {
  const { store } = storeFolder()
  const tasks = Array.from({ length: 10 }, (_, i) => doubler.task(i, { id: `d${i}`, groundTruth: i * 2 }))
  await Runners.runTask(tasks, { ...base, store, runId: 'more', grade: equals })
  const three = await Runners.runTask(tasks, { ...base, store, resume: 'more', rollouts: 3, grade: equals })
  expect([...three.values()].filter(({ restored }) => restored)).toHaveLength(10)
  expect(three.size).toBe(30)
  for (const response of three.values()) expect(response.grade).toMatchObject({ success: true })
  expect(query(join(store, 'store.sqlite'), 'SELECT total, success FROM run')).toEqual([{ total: 30, success: 30 }])
  await refused(
    () => Runners.runTask(tasks, { ...base, store, resume: 'more', rollouts: 2 }),
    'RESUME_MISMATCH',
    'fewer rollouts',
  )
  // From a stream, the same.
  const stream = (function* () {
    yield* tasks
  })()
  const four = await Runners.runTask(stream, { ...base, store, resume: 'more', rollouts: 4, grade: equals })
  expect([...four.values()].filter(({ restored }) => restored)).toHaveLength(30)
  expect(four.size).toBe(40)
})

it('what cannot be rolled out is refused', async () => {
  const [a, b] = [doubler.task(1, { id: 'a' }), doubler.task(1, { id: 'b', dependsOn: ['a'] })]
  await refused(() => Runners.runTask([a, b], { ...base, rollouts: 2 }), 'CONFIG_INVALID', 'dependsOn')
  await refused(() => Runners.runTask([a], { ...base, rollouts: 2, sequenceDependent: true }), 'CONFIG_INVALID')
  await refused(() => Runners.runTask(a, { ...base, rollouts: 2 }), 'CONFIG_INVALID', '[task]')
  await refused(
    () => Runners.runTask([doubler.task(1, { id: 'a@2' })], { ...base, rollouts: 2 }),
    'TASK_INVALID',
    'a@2',
  )
})
