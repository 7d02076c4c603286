import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Runners, type ServiceContext } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { seeded } from '../../src/random.ts'
import { asker, counted, dieOnce, killer, leaver, manyAtOnce, slowBetween, streamer, told } from '../agents/askers.ts'
import { echo } from '../agents/basics.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { refused } from '../support/refused.ts'
import { runScript } from '../support/run-script.ts'
import { SEED, share } from '../support/storm.ts'

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 2, concurrency: 8 } as const

describe('a service', () => {
  it('answers what tasks ask it, whatever that is', async () => {
    const seen: ServiceContext[] = []
    const services = {
      double: (question: number, ctx: ServiceContext) => {
        seen.push(ctx)
        return question * 2
      },
      later: async (question: unknown) => {
        await sleep(20)
        return { question, map: new Map([[1, new Date(5)]]) }
      },
    }
    const tasks = Array.from({ length: 50 }, (_, i) => asker.task({ service: 'double', question: i }, { id: `t${i}` }))
    const responses = await Runners.runTask(tasks, { ...base, services, runId: 'asks' })
    expect([...responses.values()].map(({ answer }) => answer)).toEqual(tasks.map((_, i) => i * 2))
    expect(seen.find(({ taskId }) => taskId === 't7')).toMatchObject({ runId: 'asks', attempt: 1 })
    const large = { text: 'x'.repeat(3_000_000) }
    const late = await Runners.runTask(asker.task({ service: 'later', question: large }), { ...base, services })
    expect(late.answer).toEqual({ question: large, map: new Map([[1, new Date(5)]]) })
  })

  it('that fails, or is not there, is an error with a code', async () => {
    const services = {
      fails: async () => {
        throw new TypeError('no such city')
      },
      odd: () => () => 1,
      parts: async function* () {
        yield 1
      },
    }
    const ask = async (service: string) => (await Runners.runTask(told.task({ service }), { ...base, services })).answer
    expect(await ask('fails')).toEqual({ code: 'SERVICE_FAILED', message: "service 'fails' failed: no such city" })
    expect(await ask('odd')).toMatchObject({ code: 'SERVICE_FAILED', message: expect.stringContaining('function') })
    expect(await ask('parts')).toMatchObject({ code: 'SERVICE_FAILED', message: expect.stringContaining('askStream') })
    expect(await ask('failz')).toMatchObject({
      code: 'SERVICE_UNKNOWN',
      message: expect.stringMatching(/no service 'failz'.*did you mean.*fails.*services/),
    })
    const none = await Runners.runTask(told.task({ service: 'x' }), base)
    expect(none.answer).toMatchObject({ code: 'SERVICE_UNKNOWN', message: expect.stringContaining('the run has none') })
    await refused(
      () => Runners.runTask(echo.task(1), { ...base, services: { x: 5 as never } }),
      'CONFIG_INVALID',
      'services',
    )
    await refused(
      () => Runners.runTask(echo.task(1), { ...base, services: { 'manyworlds.x': () => 1 } }),
      'CONFIG_INVALID',
      'services',
    )
  })

  it('gets no more requests at once than it takes, and tasks take turns', async () => {
    let now = 0
    let most = 0
    const order: string[] = []
    const services = {
      slow: {
        atOnce: 2,
        answer: async (i: number, { taskId }: ServiceContext) => {
          most = Math.max(most, ++now)
          order.push(taskId)
          await sleep(1)
          now--
          return i
        },
      },
    }
    const tasks = ['a', 'b', 'c'].map((id) => manyAtOnce.task({ service: 'slow', count: 200 }, { id }))
    // In one worker: none of the three can be held up while another goes on.
    const one = { ...base, workerNum: 1 }
    await Runners.runTask(
      tasks.map(() => told.task({ service: 'none' })),
      one,
    )
    const responses = await Runners.runTask(tasks, { ...one, services })
    for (const { answer } of responses.values()) expect(answer).toEqual(Array.from({ length: 200 }, (_, i) => i))
    expect(most).toBe(2)
    // Once all three are there, none is served twice while another waits.
    const middle = order.slice(100, 300).join('')
    expect(middle).not.toMatch(/aaa|bbb|ccc/)
  })

  it('streams, no faster than it is listened to, and ends when nobody listens', async () => {
    let made = 0
    let ended = 0
    const services = {
      count: async function* (parts: number) {
        try {
          for (let i = 0; i < parts; i++) {
            made++
            yield i
          }
        } finally {
          ended++
        }
      },
    }
    const all = await Runners.runTask(streamer.task({ parts: 10_000 }), { ...base, services })
    expect(all.answer).toEqual({ sum: (9999 * 10_000) / 2, count: 10_000 })
    made = 0
    const some = await Runners.runTask(streamer.task({ parts: 10_000, takes: 40 }), { ...base, services })
    expect(some.answer).toMatchObject({ count: 40 })
    expect(made).toBeLessThan(100)
    await expect.poll(() => ended).toBe(2)
    const slow = await Runners.runTask(streamer.task({ parts: 300, pauseEvery: 10 }), { ...base, services })
    expect(slow.answer).toMatchObject({ count: 300 })
  })

  it('hears when its task is over, however it ended', async () => {
    const open = new Set<AbortSignal>()
    const services = {
      hello: () => 'hello',
      never: (_: unknown, { signal }: ServiceContext) => {
        open.add(signal)
        signal.addEventListener('abort', () => open.delete(signal))
        return new Promise(() => {})
      },
    }
    const left = await Runners.runTask(leaver.task({ count: 100 }), { ...base, services })
    expect(left.answer).toBe('left')
    await expect.poll(() => open.size).toBe(0)
    const timed = await Runners.runTask(asker.task({ service: 'never', clock: 'runs' }, { timeoutMs: 100 }), {
      ...base,
      services,
    })
    expect(timed.status).toBe('timeout')
    await expect.poll(() => open.size).toBe(0)
    const controller = new AbortController()
    const cancelled = Runners.runTask(asker.task({ service: 'never' }), {
      ...base,
      services,
      signal: controller.signal,
    })
    await expect.poll(() => open.size).toBe(1)
    controller.abort()
    expect((await cancelled).status).toBe('cancelled')
    await expect.poll(() => open.size).toBe(0)
    const killed = await Runners.runTask(killer.task(null), { ...base, services })
    expect(killed.status).toBe('crashed')
    await expect.poll(() => open.size).toBe(0)
  })
})

describe('a task that waits for a service', () => {
  const services = {
    slow: async (ms: number) => {
      await sleep(ms)
      return ms
    },
    never: () => new Promise(() => {}),
  }

  it('does not lose time of its own, and its response says how long it waited', async () => {
    const waits = await Runners.runTask(asker.task({ service: 'slow', question: 3000 }, { timeoutMs: 2000 }), {
      ...base,
      services,
    })
    expect(waits).toMatchObject({ status: 'success', answer: 3000 })
    expect(waits.timing.waitedMs).toBeGreaterThan(2900)
    expect(waits.timing.runMs).toBeGreaterThanOrEqual(waits.timing.waitedMs)
    const counts = asker.task({ service: 'never', clock: 'runs' }, { timeoutMs: 150 })
    expect((await Runners.runTask(counts, { ...base, services })).status).toBe('timeout')
    const without = await Runners.runTask(echo.task(1), base)
    expect(without.timing.waitedMs).toBe(0)
  })

  it('has the rest of its own time after each answer, and no more', async () => {
    const between = (count: number, ms: number) =>
      slowBetween.task({ service: 'slow', count, ms }, { id: `${count} times ${ms} ms`, timeoutMs: 1000 })
    const responses = await Runners.runTask([between(1, 5000), between(40, 100)], { ...base, services })
    for (const { id, status } of responses.values()) expect([id, status]).toEqual([id, 'timeout'])
  })

  it('is told when the request takes too long', async () => {
    const response = await Runners.runTask(told.task({ service: 'never', limitMs: 50 }, { timeoutMs: 5000 }), {
      ...base,
      services,
    })
    expect(response.answer).toMatchObject({ code: 'REQUEST_TIMEOUT', message: expect.stringContaining('50 ms') })
  })

  it('may give its slot to others', async () => {
    // One slot, and the first cannot go on before the second has run.
    let go = () => {}
    const second = new Promise<void>((resolve) => {
      go = resolve
    })
    const both = {
      wait: () => second.then(() => 'waited'),
      go: () => {
        go()
        return 'gone'
      },
    }
    const tasks = [asker.task({ service: 'wait', slot: 'give' }), asker.task({ service: 'go' })]
    const responses = await Runners.runTask(tasks, { store: false, workerNum: 1, concurrency: 1, services: both })
    expect([...responses.values()].map(({ answer }) => answer)).toEqual(['waited', 'gone'])
  })
})

describe('answers that count', () => {
  const bill = (asked: string[]) => ({
    bill: {
      durable: true,
      answer: (question: { cents: number }, { taskId }: ServiceContext) => {
        asked.push(`${taskId}/${question.cents}`)
        return { paid: question.cents, number: asked.length }
      },
    },
  })

  it.each([true, false])(
    'are given again to a task whose worker was taken down (store: %s)',
    async (stored) => {
      const { store, ledger } = storeFolder()
      const asked: string[] = []
      const tasks = [
        ...Array.from({ length: 4 }, (_, i) => counted.task({ ledger, ms: 6000 }, { id: `t${i}` })),
        // When the others have asked for all that they want, and are not done.
        dieOnce.task({ ledger, ms: 3000 }, { id: 'dies', maxAttempts: 3 }),
      ]
      const services = bill(asked)
      const config = { store: stored && store, workerNum: 1, concurrency: 8, services, backoffMs: 1 }
      const responses = await Runners.runTask(tasks, config)
      expect([...responses.values()].map(({ status }) => status)).toEqual(tasks.map(() => 'success'))
      // Asked once each, though each ran twice.
      expect(asked.toSorted()).toEqual(['t0', 't1', 't2', 't3'].flatMap((id) => [0, 1, 2].map((i) => `${id}/${i}`)))
      const lines = readFileSync(ledger, 'utf8').trim().split('\n')
      expect(lines.filter((line) => line.endsWith('paid')).toSorted()).toEqual(
        ['t0', 't1', 't2', 't3'].map((id) => `${id} paid`),
      )
      expect(lines.filter((line) => line.endsWith('ran')).length).toBeGreaterThan(4)
      for (const id of ['t0', 't3'] as const)
        expect(responses.get(id)!.answer).toMatchObject({
          answers: [{ paid: 0 }, { paid: 1 }, { paid: 2 }],
          once: { receipt: 3 },
        })
    },
    60_000,
  )

  it('are in the store, and a new attempt asks anew', async () => {
    const { store, ledger, file } = storeFolder()
    const asked: string[] = []
    await Runners.runTask(counted.task({ ledger }, { id: 'x' }), { store, runId: 'r', services: bill(asked) })
    expect(
      query(file('r'), 'SELECT id, attempt, service, occurrence, value FROM answers ORDER BY service, value'),
    ).toMatchObject([
      { id: 'x', attempt: 1, service: 'bill', occurrence: 0, value: '{"paid":0,"number":1}' },
      { service: 'bill', value: '{"paid":1,"number":2}' },
      { service: 'bill', value: '{"paid":2,"number":3}' },
      { service: 'manyworlds.once', value: '{"receipt":3}' },
    ])
  })

  it(`survive the driver: what was answered is not asked again (seed ${SEED})`, async () => {
    const random = seeded(SEED)
    for (let round = 0; round < share(2, 10); round++) {
      const { store, ledger, ran, file } = storeFolder()
      const run = (...kill: number[]) =>
        runScript('store/billed-run.ts', { args: [store, ledger, ...kill.map(String)] })
      await run(1 + Math.floor(random() * 40), Math.floor(random() * 10))
      const sql = 'SELECT id, service, hash, occurrence, value FROM answers ORDER BY id, hash, occurrence'
      const before = query(file('r'), sql)
      const askedBefore = ran().length
      const ended = await run(0, 0)
      expect(ended.code, ended.stderr).toBe(0)
      const after = query(file('r'), sql)
      // Those that were there are as they were, there are five a task, and only the missing ones were asked for.
      expect(after).toEqual(expect.arrayContaining(before))
      expect(after).toHaveLength(50)
      expect(ran().length - askedBefore).toBe(50 - before.length)
      using stored = RunFile.open('r', { store })
      for (const { id, answer } of stored.responses())
        expect((answer as number[]).map(String).toSorted()).toEqual(
          after
            .filter((row) => row.id === id)
            .map(({ value }) => String(value))
            .toSorted(),
        )
    }
  }, 120_000)
})
