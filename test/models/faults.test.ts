import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Runners, type TaskResponse } from '../../dist/index.js'
import { asker } from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

/** What servers do besides answering. Each scenario is a model of the scripted server; its tasks run side by side. */

const PASSING: Readonly<Record<string, number>> = {
  text: 0,
  '429:3': 3,
  '429:1:after=1': 1,
  '429:1:after-ms=50': 1,
  '429:1:after-date=1': 1,
  '408': 1,
  '500:2': 2,
  '503': 1,
  html: 1,
  'html-200': 1,
  garbage: 1,
  empty: 1,
  cut: 1,
  reset: 1,
  half: 1,
  'cut-body': 1,
  'reset-body': 1,
  eof: 1,
  hang: 1,
  'hang-body': 1,
  'stream-error': 1,
  'text+drip:20': 0,
  'usage:none': 0,
}

const FINAL: Readonly<Record<string, string>> = {
  '400': 'MODEL_INVALID_REQUEST',
  '401': 'MODEL_UNAVAILABLE',
  '403': 'MODEL_UNAVAILABLE',
  '404': 'MODEL_UNAVAILABLE',
  context: 'MODEL_CONTEXT_LENGTH',
  'context-llama': 'MODEL_CONTEXT_LENGTH',
  'filter-400': 'MODEL_CONTENT_FILTER',
  filter: 'MODEL_CONTENT_FILTER',
  '500:100': 'MODEL_TRANSIENT',
  'hang:100': 'MODEL_TIMEOUT',
}

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 1 })
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const nameOf = (scenario: string) => scenario.replaceAll(/[^\w.-]/g, '_')

/** Only calls that hang need a limit that is short; of others, one that is slow on a busy machine would be tried again. */
const LIMITS: Readonly<Record<string, number>> = { 'hang:100': 1500, hang: 5000, 'hang-body': 5000 }

/** One task per scenario, each with a model of its own. */
async function runAll(scenarios: readonly string[], via: 'driver' | 'direct') {
  const settings = { baseURL: server.baseURL, via, maxRetries: 2 }
  const models = Object.fromEntries(
    scenarios.map((model) => [
      nameOf(model),
      { ...settings, model: `${model}+latency:1`, timeoutMs: LIMITS[model] ?? 30_000 },
    ]),
  )
  const tasks = scenarios.map((scenario) =>
    asker.task({ model: nameOf(scenario), prompt: `${via} ${scenario}` }, { id: scenario }),
  )
  return Runners.runTask(tasks, { models, workerNum: 2, maxAttempts: 2, backoffMs: 1, store: false })
}

const modelSteps = ({ trajectory }: TaskResponse) => trajectory.filter((step) => step.kind === 'model')

describe.each(['driver', 'direct'] as const)('calls via the %s', (via) => {
  test('faults that pass cost a retry, and nothing else', { timeout: 120_000 }, async () => {
    const responses = await runAll(Object.keys(PASSING), via)
    const retries = Object.fromEntries(
      [...responses].map(([id, response]) => [id, response.error?.message ?? modelSteps(response)[0]?.retries]),
    )
    expect(retries).toEqual(PASSING)
    for (const [id, response] of responses) {
      expect([id, response.attempts, modelSteps(response).length]).toEqual([id, 1, 1])
      const ours = await server.requests({ model: `${id}+latency:1`, body: `${via} ${id}` })
      expect([id, ours.length]).toEqual([id, PASSING[id]! + 1])
      // What was recorded is what came, and went.
      expect(ours.at(-1)).toMatchObject({ end: 'sent', status: 200 })
    }
  })

  test('no answer was paid for twice', async () => {
    expect((await server.stats()).paidTwice).toEqual({})
  })

  test('faults that do not pass are not tried again, and say what they are', { timeout: 120_000 }, async () => {
    const responses = await runAll(Object.keys(FINAL), via)
    expect(Object.fromEntries([...responses].map(([id, { error }]) => [id, error?.code]))).toEqual(FINAL)
    for (const [id, { error, attempts }] of responses) {
      expect(error!.message).toMatch(/^model '/)
      const ours = (await server.requests({ model: `${id}+latency:1` })).filter(({ body }) => body.includes(via))
      const passes = error!.code === 'MODEL_TRANSIENT' || error!.code === 'MODEL_TIMEOUT'
      // The breaker wants to be sure; the task is not charged.
      const isShared = error!.code === 'MODEL_UNAVAILABLE'
      expect([id, attempts, ours.length]).toEqual([id, isShared ? 0 : passes ? 2 : 1, isShared ? 5 : passes ? 6 : 1])
    }
  })
})
