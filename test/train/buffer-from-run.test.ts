import { setTimeout as sleep } from 'node:timers/promises'
import { Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, expect, test } from 'vitest'
import { ExperienceBuffer } from '../../dist/train/experience-buffer.js'
import { ParallelTaskExecutor } from '../../dist/train/parallel-task-executor.js'
import { type CoinTask, player } from '../agents/rollouts.ts'
import { storeFolder } from '../store/store-folder.ts'
import { gather } from './gather.ts'

afterAll(() => Runners.shutdown())

const base = { workerNum: 2, concurrency: 8, backoffMs: 1, seed: 5, rollouts: 4 } as const
const coins = (count: number, input: CoinTask = {}) =>
  Array.from({ length: count }, (_, at) => player.task(at % 5 === 4 ? { fails: 'always' } : input, { id: `c${at}` }))
const summary = (buffer: ExperienceBuffer) =>
  buffer
    .sampleBatch(12)
    .map(({ trajectory, reward, advantage, returns }) => [
      ...[trajectory.id, trajectory.digest, reward, advantage, returns],
    ])

test('a buffer filled from a run file is the same whatever ran it, and as one filled by hand', async () => {
  const { own } = storeFolder()
  const buffers: ExperienceBuffer[] = []
  for (const workerNum of [1, 3]) {
    const store = own(`w${workerNum}`)
    await Runners.runTask(coins(10, { ms: 10 }), { ...base, store, workerNum, runId: 'same' })
    buffers.push(await ExperienceBuffer.fromRun(store, { seed: 3, failed: { penalize: 1 } }))
  }
  const byHand = new ExperienceBuffer({ seed: 3, failed: { penalize: 1 } })
  const { store } = storeFolder()
  const executor = new ParallelTaskExecutor({ ...base, store, runId: 'same' })
  byHand.addBatch(await gather(executor.distributeTasks(coins(10))))
  for (const buffer of [...buffers, byHand]) {
    expect(buffer.stats()).toMatchObject({ size: 40, groups: 10, openGroups: 0 })
    buffer.computeReturns(0.5)
  }
  const [first, ...others] = [...buffers, byHand].map((buffer) => [1, 2, 3].map(() => summary(buffer)))
  expect(first!.flat()).toHaveLength(36)
  for (const other of others) expect(other).toEqual(first)
})

test('failed rollouts of a run are dropped, and its groups are closed without them', async () => {
  const { own } = storeFolder()
  const store = own('r')
  await Runners.runTask(coins(5), { ...base, store, runId: 'r' })
  using run = RunFile.open(store)
  const buffer = new ExperienceBuffer()
  expect(await buffer.addRun(run)).toBe(16)
  expect(buffer.stats()).toMatchObject({ size: 16, groups: 4, openGroups: 0, added: { held: 16, failed: 4 } })
  // Once more: nothing is there twice.
  expect(await buffer.addRun(run)).toBe(0)
  expect(buffer.stats()).toMatchObject({ size: 16, groups: 4, openGroups: 0 })
})

test('a run that goes on is added bit by bit: every rollout once, no group before it is whole', async () => {
  const { own } = storeFolder()
  const store = own('r')
  const buffer = new ExperienceBuffer({ groupSize: 4, failed: 'zero' })
  const held: number[] = []
  let seen = 0
  // At most four tasks, which are sixteen rollouts, ahead of what was seen: else a quick run would be over at the first look.
  async function* paced() {
    for (const [at, task] of coins(40, { ms: 20 }).entries()) {
      while (seen < 4 * (at - 3)) await sleep(5)
      yield task
    }
  }
  const stream = Runners.streamTask(paced(), { ...base, store, runId: 'r', workerNum: 1, concurrency: 6 })
  for await (const _ of stream)
    if (++seen % 25 === 0) {
      using run = RunFile.open(store)
      held.push(await buffer.addRun(run))
      for (const { members } of buffer.groups()) expect(members).toHaveLength(4)
    }
  using run = RunFile.open(store)
  held.push(await buffer.addRun(run))
  expect(held.reduce((sum, one) => sum + one)).toBe(160)
  expect(held.filter((count) => count > 0).length).toBeGreaterThan(3)
  expect(buffer.stats()).toMatchObject({ size: 160, groups: 40, openGroups: 0 })
})

test('groups of a run that was stopped are closed with what there is', async () => {
  const { own } = storeFolder()
  const store = own('r')
  let seen = 0
  // Only the rollouts of the first task end before the run is stopped, however late that is.
  const tasks = [player.task({ ms: 50 }, { id: 'quick' }), ...coins(3, { ms: 3_600_000 })]
  for await (const _ of Runners.streamTask(tasks, { ...base, store, runId: 'r', concurrency: 1 }))
    if (++seen === 3) break
  const buffer = await ExperienceBuffer.fromRun(store)
  const { size, openGroups, groups } = buffer.stats()
  expect(size).toBeGreaterThanOrEqual(3)
  expect(size).toBeLessThan(16)
  expect(openGroups).toBe(0)
  expect(groups).toBeGreaterThan(0)
})
