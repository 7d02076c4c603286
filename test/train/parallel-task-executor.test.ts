import { readFileSync } from 'node:fs'
import { Runners } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { rewardOf } from '../../dist/train/failed-rollouts.js'
import { ParallelTaskExecutor } from '../../dist/train/parallel-task-executor.js'
import { compareRollouts } from '../../dist/train/rollout-order.js'
import type { Trajectory } from '../../dist/trajectory/trajectory.js'
import { doubler, equals } from '../agents/graded.ts'
import { type CoinTask, player } from '../agents/rollouts.ts'
import { storeFolder } from '../store/store-folder.ts'
import { CountingRuntime, refused } from '../support/refused.ts'
import { gather } from './gather.ts'

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 2, concurrency: 8, backoffMs: 1, seed: 5 } as const
const coins = (count: number, input: CoinTask = {}) =>
  Array.from({ length: count }, (_, at) => player.task(input, { id: `c${at}` }))
const places = (list: readonly Trajectory[]) => list.map(({ task, rollout }) => `${task} ${rollout}`)
const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n')

describe('trajectories', () => {
  test('come for every rollout, and sorted they are the same on every number of workers, with a store and without', async () => {
    const { store } = storeFolder()
    const arrived: string[][] = []
    const collect = async (config: object) => {
      const executor = new ParallelTaskExecutor({ ...base, ...config })
      const list = await gather(executor.distributeTasks(coins(6, { ms: 20 }), { rollouts: 3 }))
      arrived.push(places(list))
      return list.sort(compareRollouts)
    }
    const one = await collect({ workerNum: 1 })
    const four = await collect({ workerNum: 4 })
    const stored = await collect({ store })
    expect(places(one)).toEqual([0, 1, 2, 3, 4, 5].flatMap((at) => [1, 2, 3].map((n) => `c${at} ${n}`)))
    for (const list of [one, four, stored]) {
      expect(list.map(({ digest }) => digest)).toEqual(one.map(({ digest }) => digest))
      expect(list.every(({ steps, group }) => steps.length === 3 && group!.size === 3)).toBe(true)
      expect(list.map(rewardOf)).toEqual(one.map(rewardOf))
    }
    expect(new Set(one.map(({ digest }) => digest)).size).toBeGreaterThan(10)
    // They did not come in that order.
    expect(arrived).not.toContainEqual(places(one))
  })

  test('come as they are done, not at the end', async () => {
    // If they came at the end, this test would have to wait for an hour.
    const tasks = [player.task({ ms: 3_600_000 }, { id: 'slow' }), ...coins(5)]
    let first: string | undefined
    const stream = new ParallelTaskExecutor(base).distributeTasks(tasks)
    for await (const { task } of stream) {
      first = task
      break
    }
    expect(first).toMatch(/^c/)
  })

  test('are those of any agent, with the agent of the executor for tasks that name none', async () => {
    const executor = new ParallelTaskExecutor({ ...base, agent: doubler, grade: equals })
    const tasks = [
      { id: 'right', input: 2, groundTruth: 4 },
      { id: 'wrong', input: 2, groundTruth: 5 },
    ]
    const list = (await gather(executor.distributeTasks(tasks))).sort(compareRollouts)
    expect(list.map((one) => [one.task, one.agent, rewardOf(one), one.group])).toEqual([
      ['right', 'doubler', 1, null],
      ['wrong', 'doubler', 0, null],
    ])
  })

  test('know their split without a store, and the size of a group that several tasks name', async () => {
    const tasks = ['train', 'test'].map((split, at) => ({
      ...{ id: `t${at}`, input: {}, agent: player, groupId: 'both', metadata: { split } },
    }))
    const executor = new ParallelTaskExecutor(base)
    const list = (await gather(executor.distributeTasks(tasks, { rollouts: 2 }))).sort(compareRollouts)
    expect(list.map(({ id, split, group }) => [id, split, group])).toEqual([
      ['t0', 'train', { id: 'both', size: 4 }],
      ['t0@2', 'train', { id: 'both', size: 4 }],
      ['t1', 'test', { id: 'both', size: 4 }],
      ['t1@2', 'test', { id: 'both', size: 4 }],
    ])
    // Of tasks that are read one by one, nobody knows how many there will be.
    const iterated = await gather(executor.distributeTasks(tasks.values()))
    expect(iterated.map(({ group }) => group)).toEqual(Array(2).fill({ id: 'both', size: null }))
  })
})

describe('a rollout that fails', () => {
  const digests = async (input: CoinTask) => {
    const stream = new ParallelTaskExecutor(base).distributeTasks(coins(2, input), { rollouts: 2 })
    return (await gather(stream)).sort(compareRollouts)
  }

  test.each(['once', 'dies once'] as const)(
    '%s is tried again with the same seed: nobody sees a difference',
    async (fails) => {
      const whole = await digests({})
      const again = await digests({ fails })
      expect(again.map(({ attempt }) => attempt)).toEqual([2, 2, 2, 2])
      expect(again.map(({ digest }) => digest)).toEqual(whole.map(({ digest }) => digest))
      expect(again.map(rewardOf)).toEqual(whole.map(rewardOf))
    },
  )

  test('always has no reward, its steps so far, and was tried twice', async () => {
    const { ledger } = storeFolder()
    const list = await digests({ fails: 'always', ledger })
    expect(list.map(rewardOf)).toEqual([null, null, null, null])
    for (const { ending, steps, grade, episode } of list)
      expect({ ending, steps: steps.length, grade, episode }).toMatchObject({
        ending: { kind: 'failed', error: { code: 'TASK_THREW', message: 'no more coins' } },
        ...{ steps: 1, grade: null, episode: null },
      })
    expect(linesOf(ledger)).toHaveLength(8)
  })

  test('is tried as often as the caller says, if he says so', async () => {
    const { ledger } = storeFolder()
    const executor = new ParallelTaskExecutor({ ...base, maxAttempts: 1 })
    const [one] = await gather(executor.distributeTasks(coins(1, { fails: 'once', ledger })))
    expect(one!.ending.kind).toBe('failed')
    expect(linesOf(ledger)).toHaveLength(1)
  })
})

describe('whoever leaves', () => {
  test('ends the run: what runs is cancelled, nothing new is started', async () => {
    const { ledger } = storeFolder()
    const taken: Trajectory[] = []
    const COUNT = 5000
    for await (const one of new ParallelTaskExecutor(base).distributeTasks(coins(COUNT, { ms: 30, ledger }))) {
      taken.push(one)
      if (taken.length === 3) break
    }
    // What was on its way to a worker may still begin; then it stands. All of them would take 15 s.
    let begun = 0
    do {
      begun = linesOf(ledger).length
      await new Promise((resolve) => setTimeout(resolve, 1000))
    } while (linesOf(ledger).length > begun && begun < COUNT)
    expect(begun).toBeLessThan(COUNT / 2)
  })

  test('need not wait for the trajectory that was asked for last', async () => {
    const { ledger } = storeFolder()
    // The test is over long before the trajectory would come.
    await using stream = new ParallelTaskExecutor(base).distributeTasks([player.task({ ms: 3_600_000, ledger })])
    const asked = stream.next()
    await expect.poll(() => linesOf(ledger)).toHaveLength(1)
    await stream.return()
    expect(await asked).toEqual({ done: true, value: undefined })
  })

  test('a slow consumer holds the run: tasks without end are not read without end', async () => {
    let read = 0
    function* endless() {
      for (;;) yield player.task({}, { id: `e${read++}` })
    }
    let taken = 0
    let before = 0
    for await (const _ of new ParallelTaskExecutor(base).distributeTasks(endless())) {
      if (++taken === 5) {
        // What was on its way may still come; then it stands.
        do {
          before = read
          await new Promise((resolve) => setTimeout(resolve, 1000))
        } while (read > before && read < 3000)
        break
      }
    }
    expect(read).toBeLessThan(3000)
  })
})

test('the configuration goes to the engine, and mistakes are told before it starts', async () => {
  const before = CountingRuntime.starts
  const executor = new ParallelTaskExecutor({ ...base, cls: CountingRuntime, keepWarmMs: 0 })
  expect(await gather(executor.distributeTasks(coins(2)))).toHaveLength(2)
  expect(CountingRuntime.starts).toBe(before + 1)
  const next = (tasks: unknown, config: object = {}) => executor.distributeTasks(tasks as never, config).next()
  await refused(() => next([{ input: 1, id: 'x' }]), 'TASK_INVALID', "'x'", '`agent`')
  await refused(() => next(coins(1), { rollouts: 0 }), 'CONFIG_INVALID', 'rollouts')
  await refused(() => next(coins(1), { rolouts: 2 }), 'CONFIG_INVALID', 'rolouts')
  await refused(() => next([null]), 'TASK_INVALID')
  await refused(() => next(null), 'TASK_INVALID')
})
