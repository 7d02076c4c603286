import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { seeded } from '../../dist/random.js'
import type { Algorithm, Learner } from '../../dist/train/index.js'
import { tinkerSampler } from '../../dist/train/tinker/sampler.js'
import type { TinkerOptions } from '../../dist/train/tinker/settings.js'
import { tinkerLearner } from '../../dist/train/tinker/tinker-learner.js'
import { refused } from '../support/refused.ts'
import { untrained } from './tinker-model.ts'
import { tokenRows } from './tinker-rows.ts'
import { type Fault, KEY, TinkerServer, type TinkerServerOptions } from './tinker-server.ts'
import { BASE } from './tinker-service.ts'

const ALGORITHM: Algorithm = { loss: { name: 'clip' }, lr: 0.1, epochs: 2, proximal: 'learner' }
const ROWS = tokenRows(6, untrained().delta)
const SOON = { 'retry-after-ms': '5' }

const open: { [Symbol.asyncDispose]?(): PromiseLike<void> }[] = []
beforeEach(() => {
  process.env.TINKER_TEST_KEY = KEY
})
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]?.()
})

async function serve(options?: TinkerServerOptions): Promise<TinkerServer> {
  const server = await TinkerServer.start(options)
  open.push(server)
  return server
}

function learnerAt(server: TinkerServer, more: Partial<TinkerOptions> = {}): Learner {
  const options = { base: BASE, rank: 4, apiKeyEnv: 'TINKER_TEST_KEY', baseURL: server.baseURL, ...more }
  const learner = tinkerLearner(options, ALGORITHM)
  open.push(learner)
  return learner
}

/** Where two updates lead when nothing goes wrong. */
async function undisturbed(): Promise<Float64Array> {
  const server = await serve()
  await trained(server)
  return server.last.trained.delta
}

async function trained(server: TinkerServer, more: Partial<TinkerOptions> = {}): Promise<void> {
  const learner = learnerAt(server, more)
  await learner.start({ seed: 1 })
  for (let update = 0; update < 2; update++) await learner.update({ rows: ROWS })
  await learner.publish()
}

const FAULTS: readonly Fault[] = ['lost', 'cut', { status: 500 }, { status: 429, headers: SOON }, { status: 400 }]

const PATHS = [
  ...['client/config', 'create_session', 'create_model', 'forward_backward', 'optim_step', 'save_weights'],
  ...['save_weights_for_sampler', 'retrieve_future'],
]

describe('no weight is another because of', () => {
  const cases: readonly [string, readonly Fault[]][] = [
    ['connections that are cut before a call is done', ['cut', 'cut']],
    ['answers that are lost after it was done', ['lost', 'lost']],
    ['too many requests, and trouble inside', [{ status: 429, headers: SOON, body: {} }, { status: 500 }]],
    ['an empty 400 of a proxy, and a bad gateway', [{ status: 400 }, { status: 502 }]],
  ]
  for (const [name, faults] of cases)
    it(name, async () => {
      const server = await serve({ pendingPolls: 1 })
      for (const path of PATHS) server.fail(path, ...faults)
      await trained(server)
      expect(server.last.trained.delta).toEqual(await undisturbed())
    })

  it.each([1, 2, 3])('any of these, by chance (%i)', async (seed) => {
    const random = seeded(seed)
    const server = await serve({ pendingPolls: seed % 2 })
    for (const path of PATHS) {
      const draw = (): Fault => (random() < 0.7 ? 'none' : FAULTS[Math.floor(random() * FAULTS.length)]!)
      server.fail(path, ...Array.from({ length: 60 }, draw))
    }
    await trained(server)
    expect(server.last.trained.delta).toEqual(await undisturbed())
  })

  it('results that take their time', async () => {
    const server = await serve({ pendingPolls: 4 })
    await trained(server)
    expect(server.last.trained.delta).toEqual(await undisturbed())
    expect(server.count('retrieve_future')).toBeGreaterThan(4 * server.count('optim_step'))
  })

  it('sessions that end between two updates', async () => {
    const server = await serve()
    const learner = learnerAt(server)
    await learner.start({ seed: 1 })
    await learner.update({ rows: ROWS })
    await learner.save()
    server.service.endSessions()
    await learner.update({ rows: ROWS })
    expect(server.count('create_session')).toBe(2)
    expect(server.last.trained.delta).toEqual(await undisturbed())
  })

  it('a session that ends in the middle of an update, which then can be made again', async () => {
    const server = await serve()
    const learner = learnerAt(server)
    await learner.start({ seed: 1 })
    await learner.update({ rows: ROWS })
    server.fail('optim_step', { status: 410, body: { detail: 'session has finished' } })
    await refused(() => learner.update({ rows: ROWS }), 'LEARNER_FAILED', 'version 1 was kept', 'HTTP 410')
    await learner.update({ rows: ROWS })
    expect(server.last.trained.delta).toEqual(await undisturbed())
  })

  it('an outage that outlasts our patience, where the version can be published later', async () => {
    const server = await serve()
    const learner = learnerAt(server, { retryMs: 400 })
    await learner.start({ seed: 1 })
    for (let update = 0; update < 2; update++) await learner.update({ rows: ROWS })
    // However often it tries.
    server.fail('save_weights_for_sampler', ...Array.from({ length: 99 }, (): Fault => 'lost'))
    await refused(() => learner.publish(), 'LEARNER_FAILED', 'save_weights_for_sampler')
    server.heal('save_weights_for_sampler')
    expect((await learner.publish()).ref.version).toBe(2)
    // As the service has it: the last was done once, and nothing was done without its turn.
    expect(server.last.trained.delta).toEqual(await undisturbed())
    await learner.update({ rows: ROWS })
  })

  it('a service that wants tokens instead of the key, and short-lived ones', async () => {
    const server = await serve({ tokenSeconds: 61 })
    await trained(server)
    expect(server.last.trained.delta).toEqual(await undisturbed())
    const keys = server.calls.map(({ path, headers }) => [path, headers['x-api-key'] === KEY])
    expect(keys.filter(([path, isKey]) => isKey && path !== 'client/config' && path !== 'auth/token')).toEqual([])
  })
})

describe('what cannot go on says why', () => {
  it('without a key', async () => {
    const server = await serve()
    delete process.env.TINKER_TEST_KEY
    await refused(() => learnerAt(server).start({ seed: 1 }), 'CONFIG_INVALID', 'TINKER_TEST_KEY is not set')
  })

  it('with a key that is refused, which nobody gets to see', async () => {
    const server = await serve()
    process.env.TINKER_TEST_KEY = 'tml-somebody-elses-secret'
    const error = await refused(
      () => learnerAt(server).start({ seed: 1 }),
      'MODEL_AUTHENTICATION',
      'TINKER_TEST_KEY',
      '401',
    )
    expect(error.message).toContain('Invalid API key: [redacted]')
    expect(JSON.stringify(error)).not.toContain('somebody')
    expect(server.count('create_session')).toBe(0)
  })

  it('with an account that is not paid', async () => {
    const server = await serve()
    server.fail('create_model', { status: 402, body: { detail: 'no payment method' } })
    await refused(() => learnerAt(server).start({ seed: 1 }), 'MODEL_AUTHENTICATION', 'billing', 'no payment method')
  })

  it('with a model that is not there', async () => {
    const learner = learnerAt(await serve(), { base: 'toy/unknown' })
    await refused(() => learner.start({ seed: 1 }), 'LEARNER_FAILED', 'create_model', "'toy/unknown' is not supported")
  })

  it('when it takes too long', async () => {
    const learner = learnerAt(await serve({ pendingPolls: 1e9 }), { timeoutMs: 2000 })
    await refused(
      () => learner.start({ seed: 1 }),
      'LEARNER_FAILED',
      'create_model',
      '2.0 s',
      'paused_capacity: all busy',
    )
  })

  it('when nobody answers at all', async () => {
    const server = await serve()
    server.fail('client/config', ...Array.from({ length: 9 }, (): Fault => 'hang'))
    await refused(() => learnerAt(server, { timeoutMs: 300 }).start({ seed: 1 }), 'LEARNER_FAILED', 'client/config')
  })

  it('when it fails again and again', async () => {
    const server = await serve()
    server.fail('create_session', ...Array.from({ length: 99 }, (): Fault => ({ status: 503 })))
    const error = await refused(
      () => learnerAt(server, { retryMs: 500 }).start({ seed: 1 }),
      'LEARNER_FAILED',
      'HTTP 503',
    )
    expect(error.message).toMatch(/after \d+ attempts in/)
  })

  it('at an address where something else is', async () => {
    const server = await serve()
    server.fail('client/config', { status: 200, body: 'hello' as unknown as object })
    await refused(() => learnerAt(server).start({ seed: 1 }), 'LEARNER_FAILED', '`baseURL`')
    server.fail('create_session', { status: 200, body: {} })
    await refused(() => learnerAt(server).start({ seed: 1 }), 'LEARNER_FAILED', '`session_id`')
  })

  it('with numbers that are none, and stays at its version', async () => {
    const server = await serve()
    const learner = learnerAt(server)
    await learner.start({ seed: 1 })
    const published = await learner.publish()
    server.fail('optim_step', 'cut')
    server.last.trained.delta[0] = Number.NaN
    const rows = tokenRows(6, untrained().delta)
    await refused(() => learner.update({ rows }), 'LEARNER_FAILED', 'version 0 was kept')
    expect(server.count('optim_step')).toBe(0)
    expect(await learner.publish()).toEqual(published)
  })

  it('after it was closed', async () => {
    const server = await serve({ pendingPolls: 1e9 })
    const learner = learnerAt(server)
    const starting = learner.start({ seed: 1 })
    setTimeout(() => void learner[Symbol.asyncDispose]?.(), 100)
    await refused(() => starting, 'LEARNER_FAILED', 'closed')
    await refused(() => learner.update({ rows: ROWS }), 'LEARNER_INVALID', 'closed')
  })

  it('where a version is not there any more', async () => {
    const server = await serve()
    const learner = learnerAt(server)
    const { bytes } = await learner.start({ seed: 1 })
    server.service.forget((JSON.parse(Buffer.from(bytes!).toString()) as { path: string }).path)
    const options = { base: BASE, apiKeyEnv: 'TINKER_TEST_KEY', baseURL: server.baseURL }
    await refused(() => tinkerSampler(options, bytes), 'LEARNER_FAILED', 'create_sampling_session', 'no checkpoint')
  })
})

describe('a session', () => {
  afterEach(() => void vi.useRealTimers())

  it('is kept alive by heartbeats, until the learner is closed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const server = await serve()
    const learner = learnerAt(server)
    await learner.start({ seed: 1 })
    // One that fails is no harm.
    server.fail('session_heartbeat', 'cut')
    vi.advanceTimersByTime(30_000)
    await expect.poll(() => server.count('session_heartbeat')).toBe(3)
    await learner[Symbol.asyncDispose]?.()
    vi.advanceTimersByTime(30_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})
