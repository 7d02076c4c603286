import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { asker, judged } from '../agents/models.ts'
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
