import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ManyworldsError } from '../../src/errors.ts'
import { Limiter, type LimiterSettings, type Permit } from '../../src/models/driver/limiter.ts'
import { cpuMs } from '../support/cpu-ms.ts'
import { simulate, VirtualTime } from './simulation.ts'

const SEEDS = [1, 2, 3, 4, 5]
const { signal } = new AbortController()
const request = { by: {}, tokens: 0, signal }
const OK = { kind: 'ok' } as const

/** A limiter in a time of its own, and a note of what it let through. */
function limited(settings: LimiterSettings) {
  const time = new VirtualTime()
  const limiter = new Limiter(settings, time)
  const granted: { name: string; at: number; permit: Permit }[] = []
  const failed: { name: string; at: number; error: unknown }[] = []
  const ask = (name: string, options: Partial<Parameters<Limiter['acquire']>[0]> = {}) =>
    void limiter.acquire({ ...request, ...options }).then(
      (permit) => granted.push({ name, at: time.now(), permit }),
      (error: unknown) => failed.push({ name, at: time.now(), error }),
    )
  return { time, limiter, granted, failed, ask, names: () => granted.map(({ name }) => name) }
}

describe.each(SEEDS)('against a server that takes 40 requests in any second (seed %d)', (seed) => {
  it.each([5, 30])('a known limit is used, and hardly anything refused (jitter %d ms)', async (jitterMs) => {
    const { use, refused, accepted } = await simulate({ seed, jitterMs, limiter: { requestsPerMinute: 2400 } })
    expect(accepted).toBe(2000)
    expect(use).toBeGreaterThan(0.9)
    expect(refused).toBeLessThan(0.005)
  })

  it.each([
    { jitterMs: 5 },
    { jitterMs: 30 },
    { jitterMs: 5, saysWhen: false },
    { jitterMs: 5, latencyMs: [1500, 2500] as const, tasks: 200 },
  ])('an unknown limit is found: %o', async (options) => {
    const { use, accepted, between } = await simulate({ seed, limiter: {}, ...options })
    expect(accepted).toBe(2000)
    expect(use).toBeGreaterThan(0.85)
    expect(between(10_000).use).toBeGreaterThan(0.9)
    expect(between(10_000).refused).toBeLessThan(0.02)
  })

  it.each([{ requestsPerMinute: 2400 }, {}])('a limit of tokens is used, with requests %o', async (requests) => {
    const limiter = { ...requests, tokensPerMinute: 240_000 }
    const { tokenUse, refused } = await simulate({ seed, limiter, tokens: 4000 })
    expect(tokenUse).toBeGreaterThan(0.85)
    expect(refused).toBeLessThan(0.03)
  })

  it('a limit that is said to be higher than it is', async () => {
    const { use, between } = await simulate({ seed, limiter: { requestsPerMinute: 3600 }, calls: 8000 })
    expect(use).toBeGreaterThan(0.9)
    expect(between(10_000).refused).toBeLessThan(0.02)
  })

  it('a known limit that is halved: calls go on at half the rate', async () => {
    const requests = (at: number) => (at < 100_000 ? 60 : 30)
    const { between } = await simulate({ seed, limiter: { requestsPerMinute: 3600 }, calls: 10_000, requests })
    expect(between(100_000, 130_000).use).toBeGreaterThan(0.85)
    expect(between(110_000).refused).toBeLessThan(0.02)
  })

  it('that takes 20 after a minute and 60 after two', async () => {
    const requests = (at: number) => (at < 60_000 ? 40 : at < 120_000 ? 20 : 60)
    const { between } = await simulate({ seed, limiter: {}, calls: 8000, requests })
    expect(between(10_000, 60_000).use).toBeGreaterThan(0.9)
    // The server forgets what it took at the higher rate; then the limiter has found the lower one.
    expect(between(65_000, 120_000).use).toBeGreaterThan(0.9)
    expect(between(65_000, 120_000).refused).toBeLessThan(0.02)
    // After a minute without refusals it has tried three times as much.
    expect(between(180_000).use).toBeGreaterThan(0.9)
    expect(between(120_000).refused).toBeLessThan(0.02)
  })
})

describe('a server that counts in minutes', () => {
  const minute = { seed: 1, windowMs: 60_000 } as const

  it.each([3, 30, 500])('has a known limit of %d used, and refuses nothing', async (perMinute) => {
    const { use, refused } = await simulate({
      ...{ ...minute, limiter: { requestsPerMinute: perMinute }, requests: () => perMinute, calls: perMinute * 8 },
    })
    expect(refused).toBe(0)
    expect(use).toBeGreaterThan(0.95)
  })

  it('has a limit of tokens used, and refuses nothing', async () => {
    const limiter = { requestsPerMinute: 2400, tokensPerMinute: 240_000 }
    const server = { requests: () => 2400, tokens: 240_000, calls: 8000, latencyMs: [1500, 2500] as const }
    const { tokenUse, refused } = await simulate({ ...minute, limiter, ...server })
    expect(refused).toBe(0)
    expect(tokenUse).toBeGreaterThan(0.92)
  })

  it.each([3, 500])('has an unknown limit of %d found', async (perMinute) => {
    const { use, accepted } = await simulate({
      ...minute,
      limiter: {},
      requests: () => perMinute,
      calls: perMinute * 8,
    })
    expect(accepted).toBe(perMinute * 8)
    expect(use).toBeGreaterThan(0.85)
  })
})

describe('the first calls', () => {
  it.each([
    { requestsPerMinute: 500 },
    { requestsPerMinute: 0.1 },
    { tokensPerMinute: 1000 },
    {},
    { maxConcurrent: 1 },
  ])('do not wait: %o', async (settings) => {
    const { time, granted, ask } = limited(settings)
    await time.run(5000)
    ask('first', { tokens: 500 })
    await time.run(5000)
    expect(granted).toMatchObject([{ at: 5000 }])
  })

  it('of a limit of 3 per minute come in seconds, and the fourth a minute after the first', async () => {
    const { time, granted, ask } = limited({ requestsPerMinute: 3 })
    for (const name of '12345') ask(name)
    await time.run()
    const at = granted.map((one) => Math.round(one.at / 100) / 10)
    expect(at).toEqual([0, 1, 2, 61.9, 62.8])
  })

  it('of a limit of 60 per minute come one per second', async () => {
    const { time, granted, ask } = limited({ requestsPerMinute: 60 })
    for (const name of '1234') ask(name)
    await time.run()
    for (let i = 1; i < 4; i++) expect(granted[i]!.at - granted[i - 1]!.at).toBeGreaterThan(980)
  })
})

describe('Retry-After', () => {
  it('is a pause for everybody', async () => {
    const { time, limiter, granted, ask } = limited({ requestsPerMinute: 6000 })
    ask('refused')
    await time.run(0)
    granted[0]!.permit.settle({ kind: 'rate_limit', retryAfterMs: 7000 })
    expect(limiter.state.paused).toBe(7000)
    ask('other', { by: {} })
    ask('another', { by: {} })
    await time.run(6999)
    expect(granted).toHaveLength(1)
    await time.run(7500)
    expect(granted).toHaveLength(3)
    expect(limiter.state.paused).toBe(0)
  })

  it('of a day is tried again after 5 minutes', async () => {
    const { time, granted, ask } = limited({})
    ask('refused')
    await time.run(0)
    granted[0]!.permit.settle({ kind: 'rate_limit', retryAfterMs: 86_400_000 })
    ask('next')
    await time.run()
    expect(granted[1]!.at).toBe(300_000)
  })

  it('that is missing is guessed, twice as long each time, until a call succeeds', async () => {
    const { time, limiter, granted, ask } = limited({ requestsPerMinute: 600 })
    const pauses: number[] = []
    const refuse = async () => {
      ask('refused')
      await time.run(time.now() + 60_000)
      granted.at(-1)!.permit.settle({ kind: 'rate_limit' })
      pauses.push(Math.round(limiter.state.paused))
    }
    for (let i = 0; i < 8; i++) await refuse()
    // 5 requests of 10 per second; the rate is cut too, and the guess grows by that.
    expect(pauses[0]).toBe(500)
    for (let i = 1; i < 8; i++) expect(pauses[i]! / pauses[i - 1]!).toBeGreaterThan(pauses[i]! < 30_000 ? 1.99 : 0.99)
    expect(pauses.at(-1)).toBe(30_000)
    ask('taken')
    await time.run(time.now() + 60_000)
    granted.at(-1)!.permit.settle(OK)
    await refuse()
    expect(pauses.at(-1)).toBeLessThanOrEqual(2000)
  })
})

describe('those who wait', () => {
  it('take turns: a task that asks a hundred times does not keep another from its first', async () => {
    const { time, ask, names } = limited({ requestsPerMinute: 600 })
    const [a, b, c] = [{}, {}, {}]
    for (let i = 0; i < 100; i++) ask(`a${i}`, { by: a })
    for (let i = 0; i < 3; i++) ask(`b${i}`, { by: b })
    ask('c0', { by: c })
    await time.run()
    expect(names().slice(0, 8)).toEqual(['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3', 'b2'])
    expect(names()).toHaveLength(104)
  })

  it('are passed by a retry of the same task, not by one of another', async () => {
    const { time, ask, names } = limited({ requestsPerMinute: 600 })
    const [a, b] = [{}, {}]
    for (const name of ['a0', 'a1', 'a2']) ask(name, { by: a })
    ask('b0', { by: b })
    ask('a again', { by: a, first: true })
    await time.run()
    expect(names()).toEqual(['a0', 'a again', 'b0', 'a1', 'a2'])
  })

  it('until a time are let through then, and pass nobody', async () => {
    const { time, limiter, granted, ask, names } = limited({ requestsPerMinute: 600 })
    ask('later', { notBefore: 5000 })
    ask('now')
    expect(limiter.state.queued).toBe(1)
    await time.run()
    expect(names()).toEqual(['now', 'later'])
    expect(granted[1]!.at).toBe(5000)
  })

  it('and are aborted leave, and hold up nobody', async () => {
    const { time, limiter, failed, ask, names } = limited({ requestsPerMinute: 6 })
    const controller = new AbortController()
    ask('first')
    ask('aborted', { signal: controller.signal })
    ask('aborted early', { signal: controller.signal, notBefore: 1e6 })
    ask('last')
    await time.run(100)
    controller.abort(new Error('enough'))
    expect(limiter.state.queued).toBe(1)
    ask('too late', { signal: controller.signal })
    await time.run()
    expect(names()).toEqual(['first', 'last'])
    expect(failed.map(({ name, at }) => [name, at])).toEqual([
      ...[
        ['aborted', 100],
        ['aborted early', 100],
        ['too late', 100],
      ],
    ])
    expect(failed[0]!.error).toEqual(new Error('enough'))
  })

  it('too long are told how many wait and at which rate', async () => {
    const { time, limiter, failed, ask } = limited({ requestsPerMinute: 2 })
    for (let i = 0; i < 10; i++) ask(`${i}`, { waitMs: 150_000 })
    await time.run()
    // Two per minute, and less: 2 at first, 2 after one minute, 2 after two.
    expect(failed).toHaveLength(4)
    const { error, at } = failed[0]!
    expect(at).toBe(150_000)
    expect(ManyworldsError.is(error) && error.code).toBe('MODEL_PERMIT_TIMEOUT')
    expect((error as Error).message).toMatch(
      /^no permit for a call within 150000 ms: 4 waiting, 6 in flight, recent rate [\d.]+ per minute \(limit 2 per minute\)/,
    )
    expect(limiter.state.queued).toBe(0)
  })

  it('wait without a timer if only the end of a call can help, and leave none behind', async () => {
    const { time, limiter, granted, ask } = limited({ maxConcurrent: 1, requestsPerMinute: 60_000 })
    ask('first')
    await time.run(0)
    expect(time.pending.size).toBe(0)
    ask('second')
    // The bound of its wait.
    expect(time.pending.size).toBe(1)
    granted[0]!.permit.settle(OK)
    await time.run()
    expect(granted).toHaveLength(2)
    expect(time.pending.size).toBe(0)
    expect(limiter.state).toMatchObject({ queued: 0, inFlight: 1 })
  })

  it('10,000 at once are let through in no time, and leave as fast', async () => {
    const time = new VirtualTime()
    const limiter = new Limiter({ requestsPerMinute: 1e9, maxConcurrent: 20_000 }, time)
    const controller = new AbortController()
    const began = cpuMs()
    const all = Array.from({ length: 10_000 }, (_, i) => limiter.acquire({ ...request, by: { i: i % 5000 } }))
    const leaving = Array.from({ length: 10_000 }, () =>
      limiter.acquire({ ...request, signal: AbortSignal.any([controller.signal]), notBefore: 1e9 }),
    )
    controller.abort()
    await Promise.allSettled(leaving)
    await time.run()
    await Promise.all(all)
    expect(cpuMs() - began).toBeLessThan(3000)
  })

  it('do not keep a process alive', () => {
    const script = `
      import { Limiter } from '${new URL('../../dist/models/driver/limiter.js', import.meta.url)}'
      const limiter = new Limiter({ requestsPerMinute: 1 })
      const { signal } = new AbortController()
      for (const by of [{}, {}]) limiter.acquire({ by, tokens: 0, signal }).then(() => console.log('granted'))`
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 50_000 })
    expect(String(out)).toBe('granted\n')
  })
})

describe('calls under way', () => {
  it('are never more than maxConcurrent', async () => {
    const { time, limiter, granted, ask } = limited({ maxConcurrent: 3 })
    for (let i = 0; i < 10; i++) ask(`${i}`)
    await time.run(60_000)
    expect(granted).toHaveLength(3)
    granted[0]!.permit.settle(OK)
    // Only the first time counts.
    granted[0]!.permit.settle(OK)
    granted[0]!.permit.settle({ kind: 'rate_limit', retryAfterMs: 1e6 })
    await time.run(120_000)
    expect(granted).toHaveLength(4)
    expect(limiter.state).toMatchObject({ inFlight: 3, queued: 6, paused: 0 })
  })

  it('are bounded, also if nobody said how many', async () => {
    const { time, granted, ask } = limited({})
    for (let i = 0; i < 2000; i++) ask(`${i}`)
    await time.run(600_000)
    expect(granted).toHaveLength(256)
  })

  it('that waited for others do not make it try a higher rate', async () => {
    const { time, limiter, granted, ask } = limited({ maxConcurrent: 1 })
    ask('0')
    for (let i = 1; i < 30; i++) {
      await time.run(i * 10_000)
      ask(`${i}`)
      granted.at(-1)!.permit.settle(OK)
    }
    await time.run(400_000)
    granted.at(-1)!.permit.settle({ kind: 'rate_limit', retryAfterMs: 0 })
    // From the 5 per second that it begins with.
    expect(limiter.state.limitPerSecond).toBeLessThan(5)
  })
})

it('one refusal hardly lowers a known limit, a second one soon after does', async () => {
  const { time, limiter, granted, ask } = limited({ requestsPerMinute: 2400 })
  const refuseAt = async (at: number) => {
    for (let i = granted.length + limiter.state.queued; i < (at / 1000) * 45; i++) ask(`${i}`)
    await time.run(at)
    const last = granted.at(-1)!
    for (const { permit } of granted) if (permit !== last.permit) permit.settle(OK)
    last.permit.settle({ kind: 'rate_limit', retryAfterMs: 0 })
    return limiter.state.limitPerSecond
  }
  expect(await refuseAt(2000)).toBeCloseTo(40 * 0.98)
  // The server has accepted what it was sent, which is 97 % of the limit, and less since the first refusal.
  expect(await refuseAt(6000)).toBeLessThan(40 * 0.97)
})

describe('tokens', () => {
  it('that a call did not use are for the next', async () => {
    const { time, granted, ask } = limited({ tokensPerMinute: 1000 })
    ask('reserves', { tokens: 900 })
    ask('waits', { tokens: 900 })
    await time.run(2000)
    expect(granted).toHaveLength(1)
    granted[0]!.permit.settle({ ...OK, tokens: 50 })
    await time.run(2000)
    expect(granted).toHaveLength(2)
  })

  it('of a call that failed stay reserved, of one that was refused do not', async () => {
    for (const [kind, at] of [
      ['failed', 61_856],
      ['rate_limit', 2000],
    ] as const) {
      const { time, granted, ask } = limited({ tokensPerMinute: 1000 })
      ask('first', { tokens: 900 })
      ask('waits', { tokens: 900 })
      await time.run(2000)
      granted[0]!.permit.settle({ kind, retryAfterMs: 0 })
      await time.run()
      expect(Math.round(granted[1]!.at), kind).toBe(at)
    }
  })

  it('that nobody knew before count afterwards', async () => {
    const { time, granted, ask } = limited({ tokensPerMinute: 1000 })
    ask('unknown')
    await time.run(0)
    granted[0]!.permit.settle({ ...OK, tokens: 990 })
    ask('waits', { tokens: 20 })
    await time.run(60_000)
    expect(granted).toHaveLength(1)
    await time.run()
    expect(granted).toHaveLength(2)
  })

  it('for a large call do not hold up small ones of other tasks, nor do those hold it up for ever', async () => {
    const { time, granted, ask, names } = limited({ tokensPerMinute: 1000, requestsPerMinute: 6000 })
    ask('first', { by: {}, tokens: 400 })
    ask('large', { by: {}, tokens: 900 })
    for (let nth = 0; nth < 50; nth++) ask(`small ${nth}`, { by: {}, tokens: 10 })
    await time.run(30_000)
    // They pass it for ten seconds, with a second between two calls at most.
    const passed = names().filter((name) => name.startsWith('small')).length
    expect(passed).toBeGreaterThan(8)
    expect(passed).toBeLessThan(50)
    expect(names()).not.toContain('large')
    await time.run(70_000)
    const large = granted.find(({ name }) => name === 'large')!
    // When what had passed it has left the window.
    expect(large.at).toBeLessThan(10_000 + 62_000)
  })

  it('more than the whole limit go through, alone', async () => {
    const { time, granted, ask } = limited({ tokensPerMinute: 1000 })
    for (const [name, tokens] of [
      ['small', 100],
      ['huge', 50_000],
    ] as const)
      ask(name, { by: {}, tokens })
    // It has waited too long to be passed.
    await time.run(11_000)
    ask('after', { by: {}, tokens: 100 })
    await time.run()
    const [small, huge, after] = granted
    expect(huge!.name).toBe('huge')
    expect(huge!.at - small!.at).toBeGreaterThan(60_000)
    expect(after!.at - huge!.at).toBeGreaterThan(60_000)
    expect(after!.at).toBeLessThan(125_000)
  })
})

it('what a server says that makes no sense is ignored', async () => {
  const { time, limiter, granted, ask } = limited({ tokensPerMinute: 1000 })
  ask('odd', { tokens: Number.POSITIVE_INFINITY })
  await time.run(0)
  granted[0]!.permit.settle({ kind: 'rate_limit', tokens: Number.NaN, retryAfterMs: Number.NaN })
  expect(limiter.state.paused).toBeGreaterThan(0)
  ask('next', { tokens: 100 })
  await time.run()
  expect(granted).toHaveLength(2)
  expect(granted[1]!.at).toBeGreaterThan(100)
})

it('a call that is said to take more tokens than there can be does not stop the others', async () => {
  const { time, granted, ask, names } = limited({ tokensPerMinute: 1000 })
  for (const name of ['one', 'two']) ask(name, { tokens: 600 })
  await time.run(62_000)
  // It waited for tokens, and is refused: from now on each token has its distance.
  granted[1]!.permit.settle({ kind: 'rate_limit', retryAfterMs: 0 })
  ask('huge', { tokens: 1e308 })
  await time.run(200_000)
  granted[2]!.permit.settle({ kind: 'failed' })
  for (let n = 0; n < 3; n++) ask('later', { tokens: 10, by: {} })
  await time.run(400_000)
  expect(names()).toEqual(['one', 'two', 'huge', 'later', 'later', 'later'])
})

it('settings that are no limit are refused', () => {
  for (const wrong of [{ requestsPerMinute: 0 }, { tokensPerMinute: -1 }, { maxConcurrent: Number.NaN }])
    expect(() => new Limiter(wrong)).toThrow(RangeError)
})

const anyOutcome = fc.record({
  kind: fc.constantFrom('ok', 'rate_limit', 'failed'),
  tokens: fc.option(fc.nat(2000), { nil: undefined }),
  retryAfterMs: fc.option(fc.nat(5000), { nil: undefined }),
}) as fc.Arbitrary<Parameters<Permit['settle']>[0]>

const anyCall = fc.record({
  at: fc.nat(20_000),
  by: fc.nat(3),
  tokens: fc.nat(3000),
  waitMs: fc.constantFrom(10, 1000, 60_000, 1e7),
  notBefore: fc.option(fc.nat(30_000), { nil: undefined }),
  first: fc.boolean(),
  abortAt: fc.option(fc.nat(30_000), { nil: undefined }),
  tookMs: fc.nat(3000),
  outcome: anyOutcome,
})

const anySettings = fc.record(
  {
    requestsPerMinute: fc.constantFrom(1, 60, 6000),
    tokensPerMinute: fc.constantFrom(100, 10_000, 1_000_000),
    maxConcurrent: fc.integer({ min: 1, max: 5 }),
  },
  { requiredKeys: ['maxConcurrent'] },
)

it('whatever happens: each request is answered once, and no more are under way than may be', async () => {
  await fc.assert(
    fc.asyncProperty(anySettings, fc.array(anyCall, { maxLength: 40 }), async (settings, calls) => {
      const time = new VirtualTime()
      const limiter = new Limiter(settings, time)
      const whose = [{}, {}, {}, {}]
      let inFlight = 0
      let most = 0
      const answers = calls.map(() => 0)
      const all = calls.map(async ({ at, by, tokens, waitMs, notBefore, first, abortAt, tookMs, outcome }, i) => {
        await time.sleep(at)
        const controller = new AbortController()
        if (abortAt !== undefined) time.setTimeout(() => controller.abort(), abortAt)
        const wait = { by: whose[by]!, tokens, waitMs, first, signal: controller.signal }
        try {
          const permit = await limiter.acquire({ ...wait, ...(notBefore !== undefined && { notBefore }) })
          most = Math.max(most, ++inFlight)
          expect(time.now()).toBeGreaterThanOrEqual(notBefore ?? 0)
          await time.sleep(tookMs)
          inFlight--
          permit.settle(outcome)
        } catch (error) {
          if (!controller.signal.aborted) expect(error).toMatchObject({ code: 'MODEL_PERMIT_TIMEOUT' })
        }
        answers[i]!++
      })
      await time.run()
      await Promise.all(all)
      expect(answers).toEqual(calls.map(() => 1))
      expect(most).toBeLessThanOrEqual(settings.maxConcurrent)
      expect(limiter.state).toMatchObject({ queued: 0, inFlight: 0 })
      expect(time.pending.size).toBe(0)
    }),
    { numRuns: 300 },
  )
})
