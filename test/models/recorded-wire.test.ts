import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Runners, type TaskResponse } from '../../dist/index.js'
import { checkTrajectory, RunFile, wireRequest } from '../../dist/store/index.js'
import { type Talk, type Turn, talker } from '../agents/talkers.ts'
import { storeFolder } from '../store/store-folder.ts'

/** Steps have what went over the wire: the very bytes that a server got, and those that it sent. */

interface Exchange {
  readonly path: string
  readonly received: string
  readonly sent: string
}

/** What it is to answer, and what came of it, by the `user` of the request. */
const replies = new Map<string, string[]>()
const exchanges = new Map<string, Exchange[]>()
let server: http.Server
let baseURL: string

beforeAll(async () => {
  server = http.createServer(async (request, response) => {
    const received = (await request.toArray()).map(String).join('')
    const { user } = JSON.parse(received) as { user: string }
    const sent = replies.get(user)!.shift()!
    const known = exchanges.get(user) ?? []
    exchanges.set(user, [...known, { path: request.url!, received, sent }])
    const bytes = Buffer.from(sent)
    // In pieces, which cut characters apart.
    for (let at = 0; at < bytes.length; at += 17) response.write(bytes.subarray(at, at + 17))
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
})
afterAll(async () => {
  await Runners.shutdown()
  server.closeAllConnections()
  server.close()
})

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'Ünï ✓ 🙂', '\ud83d alone', '\0', '\u2028', '__proto__', '[REDACTED]'),
)
const json = fc.jsonValue({ maxDepth: 2 })

const options = fc.record(
  {
    temperature: fc.constantFrom(0, -0, 1e-7, 0.1),
    seed: fc.integer(),
    tools: fc.constant([
      { type: 'function', name: 'add', description: 'ü', inputSchema: { type: 'object', 2: 1, 1: 2 }, strict: true },
    ]),
  },
  { requiredKeys: [] },
)

const turn: fc.Arbitrary<Turn> = fc.record(
  {
    how: fc.constantFrom('sdk', 'sdk', 'sdk', 'sdk', 'generate', 'complete', 'complete ids'),
    text,
    image: fc.constant('iVBORw0KGgo='),
    options: options.chain((given) => fc.dictionary(text, json, { maxKeys: 2 }).map((more) => ({ ...more, ...given }))),
    anew: fc.boolean(),
    prunes: fc.boolean(),
  },
  { requiredKeys: ['how', 'text'] },
) as fc.Arbitrary<Turn>

/** As a server may write it: spaces, odd numbers, escapes, calls with arguments that are not JSON. */
const reply = fc
  .record({
    content: fc.oneof(text, fc.constant(null)),
    reasoning_content: fc.option(text, { nil: undefined }),
    calls: fc.array(fc.oneof(fc.json(), fc.constantFrom('{ "a" : 1.0,\n"b":1e3 }', '{"half', '')), { maxLength: 2 }),
    ids: fc.boolean(),
    streamed: fc.boolean(),
    indent: fc.nat(2),
  })
  .map((given) => given)

let calls = 0
function replyText(
  {
    content,
    reasoning_content,
    calls: raws,
    ids,
    streamed,
    indent,
  }: typeof reply extends fc.Arbitrary<infer R> ? R : never,
  how: Turn['how'],
): string {
  if (how.startsWith('complete')) {
    const choice = { text: content ?? '', finish_reason: 'stop', ...(ids && { token_ids: [7, 8, 9] }) }
    return JSON.stringify({ choices: [choice], usage: {} }, undefined, indent)
  }
  const tool_calls = raws.map((raw) => ({
    ...(ids && { id: `call_${calls++}` }),
    function: { name: 'add', arguments: raw },
  }))
  const message = { role: 'assistant', content, reasoning_content, ...(tool_calls.length > 0 && { tool_calls }) }
  if (!streamed)
    return JSON.stringify({ id: 'x', choices: [{ message, finish_reason: 'stop' }], zero: -0 }, undefined, indent)
  const chunks = [
    { choices: [{ delta: { ...message, tool_calls: tool_calls.map((call, index) => ({ index, ...call })) } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
  ]
  return `: ping\r\n\r\n${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join('')}data: [DONE]\n\n`
}

const TALKS = 60
const talks = fc.array(fc.tuple(turn, reply), { minLength: 1, maxLength: 6 })

function scripted(name: string, sample: readonly [Turn, Parameters<typeof replyText>[0]][]): Talk {
  const key = `${name} ${replies.size}`
  replies.set(
    key,
    sample.map(([{ how }, given]) => replyText(given, how)),
  )
  return { key, turns: sample.map(([one]) => one) }
}

function expectExact(key: string, trajectory: Parameters<typeof wireRequest>[0]): void {
  const models = trajectory.steps.filter((step) => step.kind === 'model')
  const seen = exchanges.get(key)!
  expect(models.map((step) => wireRequest(trajectory, step))).toEqual(seen.map(({ received }) => received))
  expect(models.map(({ reply: { wire } }) => wire)).toEqual(seen.map(({ sent }) => sent))
}

test.each(['driver', 'direct'] as const)('requests and replies, byte for byte, called via %s', async (via) => {
  const { store } = storeFolder()
  const seed = Date.now() % 1_000_000
  const given = fc.sample(talks, { numRuns: TALKS, seed }).map((sample) => scripted(via, sample))
  const responses: Map<string, TaskResponse> = await Runners.runTask(
    given.map((talk) => talker.task(talk, { id: talk.key })),
    {
      models: { m: { baseURL, model: 'some/model', via, extraBody: { 2: 'b', 1: 'a' } } },
      workerNum: 2,
      store,
      runId: via,
    },
  )
  expect(
    [...responses.values()].flatMap(({ error }) => error?.message ?? []),
    `seed ${seed}`,
  ).toEqual([])
  using run = RunFile.open(via, { store })
  let steps = 0
  for await (const trajectory of run.trajectories()) {
    expect(checkTrajectory(trajectory)).toEqual([])
    expectExact(trajectory.id, trajectory)
    expectExact(trajectory.id, { steps: responses.get(trajectory.id)!.trajectory })
    steps += exchanges.get(trajectory.id)!.length
  }
  expect(steps).toBe(given.reduce((sum, { turns }) => sum + turns.length, 0))
})

test('a conversation is recorded once, however often it is sent', async () => {
  const turns = Array.from({ length: 8 }, (_, n): Turn => ({ how: 'sdk', text: `turn ${n}` }))
  const answer = {
    ...{ content: 'ok', reasoning_content: 'hm', calls: ['{ "a":1 }'] },
    ids: true,
    streamed: false,
    indent: 0,
  }
  const talk = scripted(
    'once',
    turns.map((one) => [one, answer]),
  )
  const { trajectory } = await Runners.runTask(talker.task(talk, { id: talk.key }), {
    ...{ models: { m: { baseURL, model: 'm' } }, workerNum: 1, store: false },
  })
  const added = trajectory.flatMap((step) => (step.kind === 'model' ? [step.request.added.length] : []))
  // The result of a tool and the user's next words.
  expect(added).toEqual([1, 2, 2, 2, 2, 2, 2, 2])
  expectExact(talk.key, { steps: trajectory })
})
