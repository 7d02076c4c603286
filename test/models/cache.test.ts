import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { adder, asker } from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

let server: ModelServer
let store: string
beforeAll(async () => {
  server = await startModelServer({ seed: 4 })
  store = mkdtempSync(join(tmpdir(), 'mw-cache-'))
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
  rmSync(store, { recursive: true, force: true })
})

const using = (model: string, more: Partial<RunConfig> = {}): RunConfig => ({
  ...{ models: { m: { baseURL: server.baseURL, model } }, store, workerNum: 2, seed: 7, cache: true, ...more },
})

const asked = async () => (await server.stats()).requests

test('a second run of the same asks nobody, and a replay gives the same digests', { timeout: 60_000 }, async () => {
  const run = (cache: RunConfig['cache'], more: Partial<RunConfig> = {}) =>
    Runners.runTask(
      ['one', 'two', 'three'].map((id) => adder.task(`add for ${id}`, { id })),
      using('tools:2', { cache: cache!, rollouts: 2, ...more }),
    )
  const before = await asked()
  const first = await run(true)
  expect((await asked()) - before).toBe(3 * 2 * 3)
  for (const again of [await run(true), await run('replay')]) {
    expect((await asked()) - before).toBe(3 * 2 * 3)
    for (const [id, { digest, answer, trajectory, usage }] of again) {
      expect([id, digest, answer]).toEqual([id, first.get(id)!.digest, first.get(id)!.answer])
      for (const step of trajectory) if (step.kind === 'model') expect(step.cached).toBe(true)
      expect(usage.outputTokens).toBe(first.get(id)!.usage.outputTokens)
    }
  }
  expect(first.get('one')!.digest).toMatch(/^[0-9a-f]{64}$/)
  // Ids of completions are new ones each time; those of calls are not.
  const ids = [...first.values()].flatMap(({ trajectory }) =>
    trajectory.map((step) => step.kind === 'model' && step.server.id),
  )
  const later = [...(await run('replay')).values()].flatMap(({ trajectory }) =>
    trajectory.map((step) => step.kind === 'model' && step.server.id),
  )
  expect(later.filter((id) => id && ids.includes(id))).toEqual([])
  // Another seed is another run.
  const other = await asked()
  await run(true, { seed: 8 })
  expect((await asked()) - other).toBe(3 * 2 * 3)
})

test('many tasks that ask the same make one call', { timeout: 60_000 }, async () => {
  const before = await asked()
  const tasks = Array.from({ length: 40 }, () => asker.task({ model: 'm', prompt: 'the same for all' }))
  const responses = await Runners.runTask(tasks, using('text+latency:200'))
  expect(new Set([...responses.values()].map(({ answer }) => answer?.text)).size).toBe(1)
  expect((await asked()) - before).toBe(1)
})

test('who waits for the call of another task has a clock that stands', { timeout: 60_000 }, async () => {
  // The first of those that ask the same waits for its turn behind three others: longer than its `timeoutMs`, of which
  // only its own call takes a part.
  const tasks = ['one', 'two', 'three', ...Array.from({ length: 6 }, () => 'the same')].map((prompt, place) =>
    asker.task({ model: 'm', prompt }, place < 3 ? {} : { timeoutMs: 5000 }),
  )
  const models = { m: { baseURL: server.baseURL, model: 'text+latency:1500', maxConcurrent: 1 } }
  const responses = await Runners.runTask(tasks, using('', { models }))
  expect([...responses.values()].flatMap(({ error }) => error?.message ?? [])).toEqual([])
})

test('a replay of something new fails, and says what to do', async () => {
  const response = await Runners.runTask(
    asker.task({ model: 'm', prompt: 'never asked' }),
    using('text', { cache: 'replay' }),
  )
  expect(response.error).toMatchObject({ code: 'CACHE_MISS', message: expect.stringContaining('never asked') })
})

test('a replay needs no key', async () => {
  const settings = { baseURL: server.baseURL, model: 'text+latency:200' }
  const run = (cache: RunConfig['cache'], apiKeyEnv: string) =>
    Runners.runTask(asker.task({ model: 'm', prompt: 'with a key' }), {
      ...using('text', { cache: cache! }),
      models: { m: { ...settings, apiKeyEnv } },
    })
  process.env.MW_TEST_CACHE_KEY = 'a-key-for-the-cache-test'
  const first = await run(true, 'MW_TEST_CACHE_KEY')
  delete process.env.MW_TEST_CACHE_KEY
  expect((await run('replay', 'MW_TEST_CACHE_KEY')).answer).toEqual(first.answer)
  await expect(run(true, 'MW_TEST_CACHE_KEY')).rejects.toMatchObject({
    ...{ code: 'CONFIG_INVALID', message: expect.stringContaining('MW_TEST_CACHE_KEY is not set') },
  })
})

test('failures are not kept', async () => {
  const ask = () => Runners.runTask(asker.task({ model: 'm', prompt: 'fails at first' }), using('400:1+text'))
  expect((await ask()).error).toMatchObject({ code: 'MODEL_INVALID_REQUEST' })
  expect((await ask()).success).toBe(true)
})
