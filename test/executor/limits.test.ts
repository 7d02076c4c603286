import { setTimeout as sleep } from 'node:timers/promises'
import { type RunConfig, Runners } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { told } from '../agents/askers.ts'
import { greedy, limited, pairOfLimited, passesGate, refused } from '../agents/limited.ts'

/** Limits of what agents do themselves, with `ctx.limit`: all workers share them. */

afterAll(() => Runners.shutdown())

const two = { store: false, workerNum: 2, concurrency: 32 } as const
const timesOf = (responses: ReadonlyMap<string, { answer?: number[] | undefined }>) =>
  [...responses.values()].flatMap(({ answer }) => answer!).toSorted((a, b) => a - b)
const now = () => performance.timeOrigin + performance.now()
/** The clocks of two processes differ by some milliseconds. */
const CLOCK_MS = 20

/**
 * No turn came before its time. A turn may reach its task late, and then the next seems to follow it too soon: what can be told is
 * how long after the beginning the n-th of all turns came at least.
 */
function expectPaced(at: readonly number[], began: number, everyMs: number): void {
  for (const [n, time] of at.entries()) expect(time - began, `turn ${n}`).toBeGreaterThan(n * everyMs - CLOCK_MS)
}

describe('a limit', () => {
  it('holds for all workers together, and is used', async () => {
    const tasks = (turns: number) => Array.from({ length: 10 }, () => limited.task({ turns }))
    // The workers are there: the time below is for turns.
    await Runners.runTask(tasks(0), two)
    const began = now()
    const at = timesOf(await Runners.runTask(tasks(4), { ...two, limits: { api: { perSecond: 20 } } }))
    expect(at).toHaveLength(40)
    expectPaced(at, began, 50)
    // Distances of 51.5 ms; the machine may hold up some of the turns, and not most of them.
    const distances = at.slice(1).map((time, n) => time - at[n]!)
    expect(distances.toSorted((a, b) => a - b)[19]).toBeLessThan(100)
  })

  it('is shared by runs of the process, if it is the same', async () => {
    const run = (perSecond: number) =>
      Runners.runTask(limited.task({ turns: 5 }), { ...two, limits: { api: { perSecond } } })
    const began = now()
    const [one, other] = await Promise.all([run(10), run(10)])
    expectPaced(
      [...one.answer!, ...other.answer!].toSorted((a, b) => a - b),
      began,
      100,
    )
    // One that is used up for a minute does not hold up another.
    const ask = async (perMinute: number, limitMs: number) => {
      const task = refused.task({ name: 'api', options: { limitMs } })
      return (await Runners.runTask(task, { ...two, limits: { api: { perMinute } } })).answer
    }
    expect(await ask(1, 30_000)).toBe('allowed')
    expect(await ask(1, 300)).toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(await ask(1.1, 30_000)).toBe('allowed')
  })

  it('gives tasks their turn in turn: one that asks for fifty does not keep others from their first', async () => {
    // Fifty turns take 17 seconds.
    const limits = { api: { perSecond: 3 } }
    const stop = new AbortController()
    let isOver = false
    const many = Runners.runTask(greedy.task({ turns: 50 }), { ...two, limits, signal: stop.signal }).finally(
      () => (isOver = true),
    )
    await sleep(500)
    const few = await Runners.runTask(limited.task({ turns: 1 }), { ...two, limits })
    expect([few.status, isOver]).toEqual(['success', false])
    stop.abort()
    expect((await many).status).toBe('cancelled')
  })

  it('of so many per hour does not spread them over the hour', async () => {
    const began = performance.now()
    const { status } = await Runners.runTask(limited.task({ turns: 3 }), { ...two, limits: { api: { perHour: 10 } } })
    expect(status).toBe('success')
    expect(performance.now() - began).toBeLessThan(45_000)
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
    const tasks = Array.from({ length: 4 }, () => limited.task({}, { timeoutMs: 4000 }))
    // The last one waits for nearly seven seconds.
    const responses = await Runners.runTask(tasks, { ...two, limits: { api: { perSecond: 0.45 } } })
    const all = [...responses.values()]
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 'success'))
    expect(Math.max(...all.map(({ timing }) => timing.waitedMs ?? 0))).toBeGreaterThan(4000)
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
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  it('for too long is told how many wait and at which rate', async () => {
    const { answer } = await Runners.runTask(refused.task({ name: 'slow', options: { limitMs: 30_000 } }), {
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
