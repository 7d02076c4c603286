import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { CachedCalls } from '../../src/models/driver/cached-calls.ts'
import { modelServices } from '../../src/models/driver/model-services.ts'
import { limiterOf, RunModels, type ServedModel } from '../../src/models/driver/run-models.ts'
import { DIRECT, MODEL, MODEL_OBJECT, MODELS, PERMIT, SETTLE } from '../../src/models/protocol.ts'
import type { Ask, DriverMessage } from '../../src/protocol/messages.ts'
import { pack, unpack } from '../../src/protocol/pack.ts'
import { runScripted, type ScriptedWorker } from '../support/scripted-worker.ts'
import { ODD_VALUES } from '../support/wrong-messages.ts'

/** A worker that asks for what no worker of ours would ask, beside one that does its work. */

const REPLY = '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"total_tokens":-5}}'
const paths: (string | undefined)[] = []
let server: Server
let models: RunModels
beforeAll(async () => {
  server = createServer((request, response) => {
    paths.push(request.url)
    request.resume().once('end', () => response.end(REPLY))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const limits = { requestsPerMinute: 600_000, tokensPerMinute: 1_000_000, maxConcurrent: 4 }
  const settings = { baseURL, model: 'm', permitTimeoutMs: 30_000, timeoutMs: 1000, ...limits }
  models = new RunModels({ m: settings }, { onThisMachine: true, cache: false })
})
afterAll(() => {
  models.close()
  server.closeAllConnections()
  server.close()
})

const GOOD: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  [MODELS]: {},
  [MODEL]: { model: 'm', path: '/chat/completions', body: '{"messages":[]}', tokens: 10 },
  [MODEL_OBJECT]: { model: 'm', options: {} },
  [DIRECT]: { model: 'm', path: '/chat/completions', body: '{"messages":[]}', tokens: 10 },
  [PERMIT]: { model: 'm', permit: 1, call: 1, tokens: 10, waitMs: 100, delayMs: 0, first: false },
  [SETTLE]: { permit: 1, outcome: { kind: 'ok', tokens: 3, retryAfterMs: 5 } },
}

const ODD: readonly unknown[] = [
  ...Object.entries(ODD_VALUES)
    .filter(([name]) => !/^(a BigInt|a Map|a Set|a Date|an error|a circle|2 MB of text|a list with)/.test(name))
    .map(([, make]) => make()),
  ...[1e308, -1e308, '../../admin', '/v1/other', 'constructor', { kind: 'rate_limit', retryAfterMs: -1e308 }],
  ...[{ kind: 'ok', tokens: 1e308 }, { kind: 'ok', tokens: 'many' }, { kind: 'odd' }],
]

/** Each service with each odd value in the place of the question, and of each of its fields. */
const questions = Object.entries(GOOD).flatMap(([service, good]) => [
  ...ODD.map((odd) => ({ service, question: odd })),
  ...Object.keys(good).flatMap((field) => ODD.map((odd) => ({ service, question: { ...good, [field]: odd } }))),
])

type Answer = Extract<DriverMessage, { type: 'answer' }>

function asks(worker: ScriptedWorker, lease: number, request: number, service: string, question: unknown): void {
  const kind: Ask['kind'] = service === PERMIT ? 'parts' : service === DIRECT ? 'own' : 'one'
  const rest = { kind, slot: 'keep', clock: 'runs' } as const
  worker.say({ type: 'ask', request, lease, service, ...rest, body: pack(question) })
}

test('what it asks fails with an error, and others are served as before', { timeout: 120_000 }, async () => {
  const next = new Map<ScriptedWorker, number>()
  const good = new Map<number, ScriptedWorker>()
  let asked = 0
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type === 'run')
      for (const item of message.tasks) {
        const lease = item[0]
        // Each hostile task asks 40 things at once, and ends when it is told to.
        if (String(unpack(item[3])).startsWith('good')) {
          good.set(lease, worker)
          asks(worker, lease, 7, MODEL, GOOD[MODEL])
          continue
        }
        for (let i = 0; i < 40; i++) {
          const { service, question } = questions[asked++ % questions.length]!
          const request = (next.get(worker) ?? 100) + 1
          next.set(worker, request)
          asks(worker, lease, request, service, question)
        }
        setTimeout(() => worker.answer(item, 'done'), 30)
      }
    if (message.type === 'answer' && message.request === 7) answered(message, worker)
  }
  const answers: unknown[] = []
  const answered = (message: Answer, worker: ScriptedWorker) => {
    answers.push(message.ok ? 'ok' : unpack(message.value))
    const [lease] = [...good].find(([, one]) => one === worker)!
    good.delete(lease)
    worker.say({ type: 'done', records: [], outcomes: [[lease, 0, 'served', 1]] })
  }
  const rounds = Math.ceil(questions.length / 40)
  const ids = Array.from({ length: rounds }, (_, n) => [`bad ${n}`, ...(n % 4 === 0 ? [`good ${n}`] : [])]).flat()
  const services = modelServices(models, new CachedCalls(undefined, undefined), () => {})
  const responses = await runScripted(ids, receive, { workers: 2, concurrency: 1, services })
  expect(asked).toBeGreaterThanOrEqual(questions.length)
  for (const [id, { answer }] of responses)
    expect([id, answer]).toEqual([id, id.startsWith('good') ? 'served' : 'done'])
  expect(answers.filter((answer) => answer !== 'ok')).toEqual([])
  expect([...new Set(paths)].sort()).toEqual(['/v1/chat/completions'])
  const [{ tokens } = { tokens: -1 }] = models.used
  expect(tokens).toBeGreaterThanOrEqual(0)
  expect(Number.isSafeInteger(tokens)).toBe(true)
  await expect.poll(() => limiterOf(models.get('m')).state).toMatchObject({ queued: 0, inFlight: 0 })
})

test('permits that a worker keeps are given to others', { timeout: 60_000 }, async () => {
  const limiter = limiterOf(models.get('m'))
  const services = modelServices(models, new CachedCalls(undefined, undefined), () => {})
  let held = 0
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type !== 'run') return
    for (const item of message.tasks) {
      for (let permit = 1; permit <= 4; permit++)
        asks(worker, item[0], permit, PERMIT, { ...GOOD[PERMIT], permit, waitMs: 2000 })
      // They are held for 7 s: twice the time of a call, and 5 s.
      const end = Date.now() + 40_000
      const look = () => {
        held = Math.max(held, limiter.state.inFlight)
        if ((held < 4 || limiter.state.inFlight > 0) && Date.now() < end) return void setTimeout(look, 50)
        worker.answer(item, limiter.state.inFlight)
      }
      look()
    }
  }
  const responses = await runScripted(['keeps'], receive, { services })
  expect([held, responses.get('keeps')!.answer]).toEqual([4, 0])
})

test('a worker may pause calls of its own kind, and not for long; not those that the driver makes', async () => {
  const { baseURL } = (models.get('m') as ServedModel).settings
  const both = new RunModels(
    { direct: { baseURL, model: 'd' }, driver: { baseURL, model: 'e', via: 'driver' } },
    { onThisMachine: true, cache: false },
  )
  onTestFinished(() => both.close())
  const services = modelServices(both, new CachedCalls(undefined, undefined), () => {})
  const ends: Record<string, unknown> = {}
  let task: Parameters<ScriptedWorker['answer']>[0] | undefined
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type === 'run') {
      task = message.tasks[0]!
      asks(worker, task[0], 2, PERMIT, { ...GOOD[PERMIT], model: 'direct', permit: 1 })
      asks(worker, task[0], 4, PERMIT, { ...GOOD[PERMIT], model: 'driver', permit: 2 })
    }
    if (message.type !== 'answer') return
    const { request, ok, value } = message
    if (request === 4) ends.driver = ok || (unpack(value) as { message: string }).message
    if (request === 2 && ends.direct === undefined) {
      ends.direct = ok
      const outcome = { kind: 'rate_limit', retryAfterMs: 300_000 }
      asks(worker, task![0], 6, SETTLE, { permit: 1, outcome })
    }
    if (request === 6) ends.settled = ok
    if ('driver' in ends && 'settled' in ends) worker.answer(task!, 'done')
  }
  await runScripted(['pauses'], receive, { services })
  expect(ends).toEqual({ direct: true, settled: true, driver: expect.stringContaining('the driver makes the calls') })
  const paused = (name: string) => limiterOf(both.get(name)).state.paused
  expect(paused('driver')).toBe(0)
  expect(paused('direct')).toBeGreaterThan(0)
  expect(paused('direct')).toBeLessThanOrEqual(30_000)
})
