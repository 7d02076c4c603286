import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type RunConfig, Runners, type RunProgress } from '../../dist/index.js'
import type { ModelSettings } from '../../dist/models/settings.js'
import { asker } from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

/** What people get wrong on their first day, and what they are told. */

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterEach(() => void vi.unstubAllEnvs())
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const KEY = 'sk-1234567890abcdefghij'
const run = (models: RunConfig['models']) =>
  Runners.runTask(asker.task({ model: 'small' }), { store: false, workerNum: 1, ...(models && { models }) })
const small = (settings: Partial<ModelSettings> = {}) =>
  run({ small: { baseURL: server.baseURL, model: 'text', ...settings } })

test('a base URL without its version: the error says what is missing', async () => {
  const { error } = await small({ baseURL: server.url })
  expect(error).toMatchObject({ code: 'MODEL_UNAVAILABLE', message: expect.stringContaining('ends with /v1') })
})

test('a base URL with the path of the call in it is refused; a slash at its end does not matter', async () => {
  await expect(small({ baseURL: `${server.baseURL}/chat/completions` })).rejects.toMatchObject({
    ...{ code: 'CONFIG_INVALID', message: expect.stringContaining('must not include `/chat/completions`') },
  })
  expect((await small({ baseURL: `${server.baseURL}/` })).success).toBe(true)
})

test('the query of a base URL stays behind the path of the call', async () => {
  const asked = { model: 'small', prompt: 'with a query' }
  for (const via of ['driver', 'direct'] as const) {
    const models = { small: { baseURL: `${server.baseURL}/?api-version=2026-01-01`, model: 'echo', via } }
    const response = await Runners.runTask(asker.task(asked), { store: false, workerNum: 1, models })
    expect(response.answer).toMatchObject({ text: 'with a query' })
  }
  const requests = await server.requests({ body: 'with a query' })
  expect(requests.map(({ path }) => path)).toEqual(['/v1/chat/completions', '/v1/chat/completions'])
})

test('a key where the name of its variable belongs is refused, and not printed', async () => {
  const error = await small({ apiKeyEnv: KEY }).catch((caught: Error) => caught)
  expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('not the key itself') })
  expect(String(error)).not.toContain(KEY)
})

test('a run without models says so, not that a service is missing', async () => {
  const { error } = await run(undefined)
  expect(error).toMatchObject({ code: 'MODEL_UNKNOWN', message: expect.stringContaining('the run has no models') })
  expect(error!.message).not.toContain('service')
})

test('a wrong key: see the variable, and do not pass it to workers', async () => {
  vi.stubEnv('FIRST_DAY_KEY', KEY)
  const { error } = await small({ model: '401', apiKeyEnv: 'FIRST_DAY_KEY' })
  expect(error).toMatchObject({
    code: 'MODEL_UNAVAILABLE',
    message: expect.stringMatching(/key in FIRST_DAY_KEY \(.*\); 5 calls/),
  })
})

test('a budget that cannot be enforced, because the server reports no tokens, is reported once per model', async () => {
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => written.mockRestore())
  const price = { input: 1, output: 1 }
  const given = { baseURL: server.baseURL, price }
  const models = {
    counted: { ...given, model: 'text' },
    driver: { ...given, model: 'text+usage:none', via: 'driver' },
    direct: { ...given, model: 'text+usage:none', via: 'direct' },
  } as const
  const tasks = Object.keys(models).flatMap((model) => [asker.task({ model }), asker.task({ model })])
  await Runners.runTask(tasks, { store: false, workerNum: 1, models })
  expect(written.mock.calls.join('')).not.toContain('reports no tokens')
  await Runners.runTask(tasks, { store: false, workerNum: 1, models, maxCostUsd: 1, maxTokens: 10_000 })
  const lines = written.mock.calls.join('').match(/model '.*/g)
  const why = 'reports no tokens (`usage`), so its calls do not count toward `maxCostUsd` and `maxTokens`: the budget'
  expect(lines?.sort()).toEqual(['direct', 'driver'].map((via) => expect.stringContaining(`model '${via}' ${why}`)))
})

test('while a server is not there, progress says that nothing was answered', async () => {
  const seen: RunProgress['waiting'][number][] = []
  const response = await Runners.runTask(asker.task({ model: 'small' }), {
    ...{
      store: false,
      workerNum: 1,
      models: { small: { baseURL: 'http://127.0.0.1:9/v1', model: 'm', maxRetries: 3 } },
    },
    progress: ({ waiting }) => void seen.push(...waiting),
  })
  expect(response.error).toMatchObject({ code: 'MODEL_UNAVAILABLE' })
  expect(seen).toContainEqual(expect.objectContaining({ model: 'small', failed: expect.any(Number) }))
})

test('while a server only refuses because of a rate limit, progress says that nothing was answered', async () => {
  const seen: RunProgress['waiting'][number][] = []
  const signal = new AbortController()
  await Runners.runTask(asker.task({ model: 'small' }), {
    ...{ store: false, workerNum: 1, signal: signal.signal },
    models: { small: { baseURL: server.baseURL, model: '429:1000' } },
    progress: ({ waiting }) => {
      seen.push(...waiting)
      if (waiting.some(({ rateLimited = 0 }) => rateLimited > 1)) signal.abort()
    },
  })
  expect(seen).toContainEqual(expect.objectContaining({ model: 'small', rateLimited: expect.any(Number) }))
})
