import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunConfig, Runners, type RunProgress, type TaskResponse, withPrice } from '../../dist/index.js'
import type { GivenModel } from '../../dist/models/language-model.js'
import { adder, asker, judged } from '../agents/models.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { storeFolder } from '../store/store-folder.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 3 })
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const price = { input: 1, output: 1 }
const using = (judge: string, store: RunConfig['store'] = false): RunConfig => ({
  models: {
    m: { baseURL: server.baseURL, model: 'text', price },
    judge: { baseURL: server.baseURL, model: judge, price, maxRetries: 0 },
  },
  ...{ workerNum: 1, store, grade: judged },
})

test.each(['in a store', 'without a store'])('a grader asks a model of the run, %s', async (where) => {
  const store = where === 'in a store' ? storeFolder().store : false
  const tasks = [1, 2, 3].map((n) => asker.task({ model: 'm', prompt: `question ${n}` }))
  const responses = [...(await Runners.runTask(tasks, using('json', store))).values()]
  for (const { grade, trajectory } of responses) {
    expect(grade).toMatchObject({ feedback: expect.stringMatching(/^judged (true|false)$/) })
    // What the judge says is no step of the agent's.
    expect(trajectory).toHaveLength(1)
  }
})

test('a judge that cannot be asked costs the grade, not the answer', async () => {
  const response = await Runners.runTask(asker.task({ model: 'm' }), using('400'))
  expect(response).toMatchObject({ success: true, grade: { reward: null, error: { code: 'GRADER_THREW' } } })
  expect(response.grade!.error!.message).toContain("model 'judge'")
})

test('what judges cost counts for the budget of the run', async () => {
  const tasks = Array.from({ length: 20 }, (_, n) => asker.task({ model: 'm', prompt: `question ${n}` }))
  const run = async (grade: RunConfig['grade']) => {
    const { grade: _, ...config } = using('json')
    const limited = { ...config, ...(grade && { grade }), concurrency: 1, maxTokens: 250 }
    const responses = [...(await Runners.runTask(tasks, limited)).values()]
    return responses.filter(({ success }) => success).length
  }
  const [alone, judgedToo] = [await run(undefined), await run(judged)]
  expect(judgedToo).toBeGreaterThan(0)
  expect(judgedToo).toBeLessThan(alone)
})

const costOf = ({ usage, grade }: TaskResponse) => (usage.costUsd ?? 0) + (grade?.usage?.costUsd ?? 0)

test('a budget is kept with many tasks at once, and every figure has what judges cost', async () => {
  const { store } = storeFolder()
  const tasks = Array.from({ length: 400 }, (_, n) => asker.task({ model: 'm', prompt: `question ${n}` }))
  let seen: RunProgress | undefined
  const maxCostUsd = 0.005
  const responses = await Runners.runTask(tasks, {
    ...using('json', store),
    ...{ runId: 'b', workerNum: 2, concurrency: 16, maxCostUsd },
    progress: (progress) => void (seen = progress),
  })
  const done = [...responses.values()].filter(({ success }) => success)
  const costs = done.map(costOf)
  const spent = costs.reduce((sum, cost) => sum + cost, 0)
  expect(spent).toBeGreaterThanOrEqual(maxCostUsd)
  expect(spent).toBeLessThan(maxCostUsd + Math.max(maxCostUsd * 0.05, ...costs))
  const judges = done.reduce((sum, { grade }) => sum + (grade?.usage?.costUsd ?? 0), 0)
  expect(judges).toBeGreaterThan(0)
  expect(seen!.usage.costUsd).toBeCloseTo(spent, 9)
  expect(seen!.graderUsage.costUsd).toBeCloseTo(judges, 9)
  const shown = await manyworlds(['show', 'b', '--store', store])
  expect(shown.stdout).toMatch(
    /usage +[\d,]+ tokens in, [\d,]+ out, \$[\d.]+ \(graders: [\d,]+ tokens in, [\d,]+ out, \$[\d.]+\)/,
  )
  // A resumed run knows what was spent, judges included: nothing more starts.
  const again = await Runners.runTask(tasks, { ...using('json', store), workerNum: 1, resume: 'b', maxCostUsd })
  expect([...again.values()].filter(({ success, restored }) => success && !restored)).toEqual([])
})

test('a limit of cost needs prices: refused before work starts, or at the first call', async () => {
  const unpriced = { baseURL: server.baseURL, model: 'text' }
  const limited = { workerNum: 1, store: false, maxCostUsd: 1 } as const
  const before = (await server.requests()).length
  const refused = (config: RunConfig, agent = asker.task({ model: 'm' })) =>
    Runners.runTask(agent, { ...limited, ...config }).catch((error: Error) => error)
  expect(await refused({ models: { m: unpriced } })).toMatchObject({
    ...{ code: 'MODEL_NO_PRICE', message: expect.stringContaining("model 'm' (text) has no price") },
  })
  expect(await refused({ models: { m: { ...unpriced, price: {} } } })).toMatchObject({ code: 'MODEL_NO_PRICE' })
  const { store } = storeFolder()
  const modelsFile = join(store, 'models.json')
  writeFileSync(modelsFile, JSON.stringify({ m: unpriced, unused: unpriced }))
  expect(await refused({ modelsFile }, adder.task('x') as never)).toMatchObject({ code: 'MODEL_NO_PRICE' })
  expect(await refused({ modelsFile })).toMatchObject({
    ...{ code: 'MODEL_NO_PRICE', message: expect.stringContaining("model 'm'") },
  })
  expect(await server.requests()).toHaveLength(before)
  writeFileSync(modelsFile, JSON.stringify({ m: { ...unpriced, price }, unused: unpriced }))
  expect(await refused({ modelsFile })).toMatchObject({ success: true })
})

test('the limit of one episode needs a price too, and a provider object can have one', async () => {
  const episode = adder.withParams({ ...adder.params, maxCostUsd: 1 }).task('x')
  const models = { m: { baseURL: server.baseURL, model: 'text' } }
  await expect(Runners.runTask(episode, { workerNum: 1, store: false, models })).rejects.toMatchObject({
    ...{ code: 'MODEL_NO_PRICE', message: expect.stringContaining("agent 'adder' has `maxCostUsd`") },
  })
  const object = { specificationVersion: 'v4', provider: 'mine', modelId: 'm-1' } as const
  const own = { ...object, doGenerate: async () => OBJECT_REPLY, doStream: async () => ({}) }
  const run = (m: GivenModel) =>
    Runners.runTask(asker.task({ model: 'm' }), { workerNum: 1, store: false, maxCostUsd: 1, models: { m } })
  await expect(run(own)).rejects.toMatchObject({
    ...{ code: 'MODEL_NO_PRICE', message: expect.stringContaining('m-1 of mine') },
  })
  expect((await run(withPrice({ ...own }, { input: 10, output: 10 }))).usage).toEqual({
    ...{ inputTokens: 30, outputTokens: 20, costUsd: 0.0005 },
  })
  expect(() => withPrice({ ...own }, { input: -1 })).toThrow('in USD per million tokens')
})

const OBJECT_REPLY = {
  content: [{ type: 'text', text: 'hi' }],
  finishReason: { unified: 'stop', raw: 'stop' },
  usage: { inputTokens: { total: 30 }, outputTokens: { total: 20 } },
  warnings: [],
}
