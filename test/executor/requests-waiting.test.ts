import { setTimeout as sleep } from 'node:timers/promises'
import { Runners, type ServiceContext } from 'manyworlds'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import {
  asker,
  asksInOrder,
  asksTwice,
  blocksForEver,
  blocksWaiting,
  gated,
  manyAtOnce,
  tellsLater,
  waitsAside,
} from '../agents/askers.ts'
import { where } from '../agents/basics.ts'

/** Tasks that wait for the driver: what their workers do meanwhile, and what their clock does. */

afterAll(() => Runners.shutdown())

const services = {
  slow: async (ms: number) => {
    await sleep(ms)
    return ms
  },
  never: () => new Promise(() => {}),
}

describe('a worker whose tasks wait', () => {
  // A worker learns how much it can take, and keeps that: each test has new ones.
  afterEach(() => Runners.shutdown())

  it('for a service that takes its time is given more, until all slots are taken', async () => {
    let now = 0
    let most = 0
    const all = Promise.withResolvers<void>()
    const tooLong = sleep(40_000, undefined, { ref: false })
    const model = async () => {
      most = Math.max(most, ++now)
      if (now === 64) all.resolve()
      // Nobody is answered before all slots are taken: one worker may start long after the other.
      await Promise.race([all.promise, tooLong])
      now--
    }
    await Runners.runTask(
      Array.from({ length: 128 }, () => asker.task({ service: 'model' })),
      { store: false, workerNum: 2, concurrency: 32, services: { model } },
    )
    expect(most).toBe(64)
  })

  it('for their turn at a service is not given more', async () => {
    const gate = { atOnce: 2, answer: () => sleep(20) }
    const responses = await Runners.runTask(
      Array.from({ length: 100 }, () => gated.task(null)),
      { store: false, workerNum: 1, concurrency: 64, services: { gate } },
    )
    const spans = [...responses.values()].map(({ answer }) => answer!)
    const inside = spans.map(([at]) => spans.filter(([began, ended]) => began <= at && at < ended).length)
    // Without that, all 64 slots would be taken.
    expect(Math.max(...inside)).toBeLessThan(40)
  })
})

describe('a task that is given up', () => {
  it('while it waits for a slot is told so, and its worker stays', async () => {
    const one = { store: false, workerNum: 1, concurrency: 1 } as const
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    const hold = () => {
      asked.resolve()
      return answer.promise
    }
    const before = await Runners.runTask(where.task(null), one)
    const task = asker.task({ service: 'hold', slot: 'give', clock: 'runs' }, { timeoutMs: 2000 })
    const waits = Runners.runTask(task, { ...one, services: { hold } })
    await asked.promise
    const hasSlot = Promise.withResolvers<void>()
    const leaves = Promise.withResolvers<void>()
    const occupy = () => {
      hasSlot.resolve()
      return leaves.promise
    }
    // It has the slot for longer than the first has time.
    const other = Runners.runTask(asker.task({ service: 'occupy' }), { ...one, services: { occupy } })
    await hasSlot.promise
    answer.resolve()
    expect((await waits).error!.code).toBe('TASK_TIMEOUT')
    leaves.resolve()
    await other
    expect((await Runners.runTask(where.task(null), one)).answer).toBe(before.answer)
  })

  it('is told so, too, where it asked from beside its event loop', async () => {
    const one = { store: false, workerNum: 1, concurrency: 4 } as const
    const response = await Runners.runTask(waitsAside.task(null, { timeoutMs: 200 }), { ...one, services })
    expect(response.error!.code).toBe('TASK_TIMEOUT')
    const { answer } = await Runners.runTask(tellsLater.task(null), one)
    expect(answer).toMatchObject([{ message: 'the task did not end within 200 ms' }])
  })
})

it.each([true, false])(
  'a task may block its event loop while its clock stands (in a native call: %s)',
  async (native) => {
    const response = await Runners.runTask(blocksWaiting.task({ native, ms: 4000 }, { timeoutMs: 3000 }), {
      store: false,
      workerNum: 1,
      services,
    })
    expect(response.error).toBeUndefined()
    expect(response.timing.waitedMs).toBeGreaterThan(3900)
  },
)

it('a task that blocks its event loop for longer than its request may take, and its own time, is ended', async () => {
  const began = performance.now()
  const response = await Runners.runTask(blocksForEver.task(1500, { timeoutMs: 500 }), {
    store: false,
    workerNum: 1,
    services,
  })
  expect(response.error!.code).toBe('TASK_BLOCKED_WORKER')
  expect(performance.now() - began).toBeGreaterThan(1900)
})

describe('of one task', () => {
  const one = { store: false, workerNum: 1, concurrency: 8 } as const

  it('no more than 64 requests are open, however many it makes', async () => {
    let now = 0
    let most = 0
    const all = Promise.withResolvers<void>()
    const tooLong = sleep(20_000, undefined, { ref: false })
    const count = async (i: number) => {
      most = Math.max(most, ++now)
      if (now === 64) all.resolve()
      // Not before as many are open as may be.
      await Promise.race([all.promise, tooLong])
      await sleep(0)
      now--
      return i
    }
    const response = await Runners.runTask(manyAtOnce.task({ service: 'count', count: 20_000 }), {
      ...one,
      services: { count },
    })
    expect(response.answer).toEqual(Array.from({ length: 20_000 }, (_, i) => i))
    expect(most).toBe(64)
  })

  it('as many may be asked for from beside its event loop', async () => {
    const response = await Runners.runTask(asksTwice.task(300), { ...one, services })
    expect(response.answer).toBe(600)
  })

  it('requests come in the order in which they were made, and so do answers, small and large', async () => {
    const seen = new Map<string, number[]>()
    const log = ({ i }: { i: number }, { taskId }: ServiceContext) => {
      seen.set(taskId, [...(seen.get(taskId) ?? []), i])
      return { i, fill: 'x'.repeat(i % 4 === 0 ? 400_000 : 1) }
    }
    const tasks = Array.from({ length: 3 }, () => asksInOrder.task(100))
    const responses = await Runners.runTask(tasks, { ...one, services: { log } })
    const inOrder = Array.from({ length: 100 }, (_, i) => i)
    for (const { id, answer } of responses.values()) {
      expect(answer).toEqual(inOrder)
      expect(seen.get(id)).toEqual(inOrder)
    }
  })
})
