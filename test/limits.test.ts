import { setTimeout as sleep } from 'node:timers/promises'
import { type RunConfig, Runners } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { told } from './agents/askers.ts'
import { greedy, limited, pairOfLimited, passesGate, refused } from './agents/limited.ts'

/** Limits of what agents do themselves, with `ctx.limit`: all workers share them. */

afterAll(() => Runners.shutdown())

const two = { store: false, workerNum: 2, concurrency: 32 } as const
const timesOf = (responses: ReadonlyMap<string, { answer?: number[] | undefined }>) =>
  [...responses.values()].flatMap(({ answer }) => answer!).toSorted((a, b) => a - b)
/** Turns are at least so far apart; what a turn takes from the driver to the task differs. */
const DELIVERY_MS = 60

describe('a limit', () => {
  it('holds for all workers together, and is used', async () => {
    const responses = await Runners.runTask(
      Array.from({ length: 10 }, () => limited.task({ turns: 4 })),
      { ...two, limits: { api: { perSecond: 20 } } },
    )
    const at = timesOf(responses)
    expect(at).toHaveLength(40)
    for (let i = 20; i < 40; i++) expect(at[i]! - at[i - 20]!).toBeGreaterThan(1000 - DELIVERY_MS)
    // 39 distances of 51.5 ms are 2 seconds.
    expect(at.at(-1)! - at[0]!).toBeLessThan(4000)
  })

  it('is shared by runs of the process, if it is the same', async () => {
    const run = (perSecond: number) =>
      Runners.runTask(limited.task({ turns: 5 }), { ...two, limits: { api: { perSecond } } })
    const [one, other, different] = await Promise.all([run(10), run(10), run(10.5)])
    const at = [...one.answer!, ...other.answer!].toSorted((a, b) => a - b)
    expect(at.at(-1)! - at[0]!).toBeGreaterThan(9 * 103 - DELIVERY_MS)
    expect(different.answer!.at(-1)! - different.answer![0]!).toBeLessThan(9 * 103 - DELIVERY_MS)
  })

  it('gives tasks their turn in turn: one that asks for fifty does not keep others from their first', async () => {
    const limits = { api: { perSecond: 21 } }
    const many = Runners.runTask(greedy.task({ turns: 50 }), { ...two, limits })
    await sleep(500)
    const few = await Runners.runTask(limited.task({ turns: 1 }), { ...two, limits })
    const { answer } = await many
    expect(answer! - few.answer![0]!).toBeGreaterThan(500)
  })

  it('of so many per hour does not spread them over the hour', async () => {
    const began = performance.now()
    const { status } = await Runners.runTask(limited.task({ turns: 3 }), { ...two, limits: { api: { perHour: 10 } } })
    expect(status).toBe('success')
    expect(performance.now() - began).toBeLessThan(15_000)
  })

  it('is there for sub-agents and environments', async () => {
    const config = { ...two, limits: { api: { perSecond: 50 } } }
    const pair = await Runners.runTask(pairOfLimited.task({ turns: 2, name: 'api' } as never), config)
    expect(pair.error).toBeUndefined()
    expect(JSON.stringify(pair.answer)).toContain('allowed')
    const episode = await Runners.runTask(passesGate.task(null), config)
    expect(episode).toMatchObject({ status: 'success' })
  })
})

describe('a task that waits for its turn', () => {
  it('loses none of its time', async () => {
    const tasks = Array.from({ length: 4 }, () => limited.task({}, { timeoutMs: 700 }))
    const responses = await Runners.runTask(tasks, { ...two, limits: { api: { perSecond: 1 } } })
    const all = [...responses.values()]
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 'success'))
    expect(Math.max(...all.map(({ timing }) => timing.waitedMs ?? 0))).toBeGreaterThan(2000)
  })

  it('and is cancelled leaves its turn to others', async () => {
    const config = { ...two, limits: { api: { perSecond: 0.9 } } }
    const stop = new AbortController()
    const cancelled = Runners.runTask(
      Array.from({ length: 30 }, () => limited.task({})),
      { ...config, signal: stop.signal },
    )
    await sleep(1500)
    stop.abort()
    await cancelled.catch(() => {})
    const began = performance.now()
    await Runners.runTask(limited.task({}), config)
    // Behind thirty it would be half a minute.
    expect(performance.now() - began).toBeLessThan(8000)
  })

  it('for too long is told how many wait and at which rate', async () => {
    const { answer } = await Runners.runTask(refused.task({ name: 'slow', options: { limitMs: 700 } }), {
      ...{ ...two, limits: { slow: { perMinute: 1 } } },
    })
    expect(answer).toBe('allowed')
    const second = await Runners.runTask(refused.task({ name: 'slow', options: { limitMs: 700 } }), {
      ...{ ...two, limits: { slow: { perMinute: 1 } } },
    })
    expect(second.answer).toMatchObject({
      code: 'REQUEST_TIMEOUT',
      message: expect.stringMatching(
        /^ctx\.limit\('slow'\): not allowed within 700 ms: .*\(limit 1 per minute\); run fewer tasks at once, raise the limit, or give a larger limitMs$/,
      ),
    })
  })

  it('without a bound of its own, because its clock runs, has the time of its task', async () => {
    const task = refused.task({ name: 'api', options: { clock: 'runs' } })
    const { answer } = await Runners.runTask(task, { ...two, limits: { api: { perSecond: 5 } } })
    expect(answer).toBe('allowed')
  })
})

describe('mistakes', () => {
  it.each([
    [
      { github: { perMinute: 80 }, mail: { perSecond: 1 } },
      'gihtub',
      `did you mean "github"?; the run has github, mail`,
    ],
    [undefined, 'github', 'the run has none'],
  ])('a name that the run does not have: %o', async (limits, name, words) => {
    const config = { ...two, ...(limits && { limits }) } as RunConfig
    const { answer } = await Runners.runTask(refused.task({ name }), config)
    expect(answer).toMatchObject({ code: 'LIMIT_UNKNOWN', message: expect.stringContaining(words) })
    expect((answer as { message: string }).message).toContain('Add it to `limits` in the run configuration')
  })

  it.each([
    ['', {}],
    [5, {}],
    ['x'.repeat(257), {}],
    ['api', { limitMs: 0 }],
    ['api', { often: 1 }],
  ])('a wrong call: %j %j', async (name, options) => {
    const { answer } = await Runners.runTask(refused.task({ name, options }), two)
    expect(answer).toMatchObject({ code: 'REQUEST_INVALID', message: expect.stringContaining('ctx.limit(): ') })
  })

  it('an unknown service is not told of the one that limits use', async () => {
    const { answer } = await Runners.runTask(told.task({ service: 'prices' }), two)
    expect(answer).toMatchObject({ message: expect.stringContaining('the run has none') })
  })

  it.each([
    { api: { perMinute: 80, perHour: 5 } },
    { api: {} },
    { api: { perDay: 80 } },
    { api: { perMinute: 0 } },
    { api: { perMinute: '80' } },
    { api: 80 },
    { '': { perMinute: 80 } },
  ])('a wrong limit: %j', async (limits) => {
    const run = Runners.runTask(limited.task({}), { ...two, limits } as unknown as RunConfig)
    await expect(run).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('`limits') })
  })
})
