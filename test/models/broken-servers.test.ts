import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Runners, type TaskLike } from '../../dist/index.js'
import type { ModelSettings } from '../../src/models/settings.ts'
import { asker, both, hasty, vague } from '../agents/models.ts'
import { makeAuthority } from '../nodes/certificates.ts'

/** Servers that are down, or want nobody to call for an hour; and tasks that are in a hurry. */

const WORDS = JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }] })
/** Nobody listens there. */
const NOBODY = 'http://127.0.0.1:9/v1'

const open: Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})
afterAll(() => Runners.shutdown())

async function serving(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => request.resume().once('end', () => answer(response)))
  open.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const answering = () => serving((response) => response.end(WORDS))

const refusing = (status: number, headers: Record<string, string> = {}) =>
  serving((response) => response.writeHead(status, headers).end('{"error":{"message":"come back tomorrow"}}'))

const run = (tasks: readonly TaskLike[], settings: Omit<ModelSettings, 'model'>) =>
  Runners.runTask(tasks, {
    ...{ workerNum: 1, store: false, maxAttempts: 1 },
    models: { m: { model: 'm', requestsPerMinute: 100_000, ...settings } },
  })

const questions = (count: number) => Array.from({ length: count }, (_, n) => asker.task({ model: 'm', prompt: `${n}` }))

describe.each(['driver', 'direct'] as const)('via the %s', (via) => {
  test('a replica that is down costs a retry, not the calls that would go there', { timeout: 60_000 }, async () => {
    for (const baseURL of [NOBODY, await refusing(502)]) {
      const responses = await run(questions(40), { baseURL, replicas: [await answering()], via, maxRetries: 1 })
      expect([...responses.values()].flatMap(({ error }) => error?.message ?? [])).toEqual([])
    }
  })

  test('who has waited in vain after a refusal learns what the server said', { timeout: 60_000 }, async () => {
    const after = { 'retry-after': '3600' }
    for (const [status, code] of [
      [429, 'MODEL_RATE_LIMIT'],
      [503, 'MODEL_TRANSIENT'],
    ] as const) {
      const baseURL = await refusing(status, after)
      const [response] = [...(await run(questions(1), { baseURL, via, permitTimeoutMs: 500 })).values()]
      expect(response!.error).toMatchObject({ code })
      expect(response!.error!.message).toMatch(
        new RegExp(
          `${status}: come back tomorrow; it asked for a pause of 1:00:00 h; .*500 ms \\(.permitTimeoutMs.\\) \\(.*\\)$`,
        ),
      )
    }
  })

  test('a server whose certificate is not trusted is not available, and the error says what to do', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mw-model-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { cert, key } = await (await makeAuthority(folder, 'stranger')).sign('127.0.0.1')
    let connections = 0
    const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) })
    server.on('connection', () => connections++)
    open.push(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const baseURL = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const plain = (await answering()).replace('http:', 'https:')
    for (const [url, words] of [
      [baseURL, /_CERT|UNABLE_TO_VERIFY/],
      [plain, /does not use TLS/],
    ] as const) {
      const [response] = [...(await run(questions(1), { baseURL: url, via })).values()]
      expect(response!.error).toMatchObject({ code: 'MODEL_UNAVAILABLE', message: expect.stringMatching(words) })
      expect(response!.error!.message).toMatch(
        /correct `baseURL`, or trust its certificate with NODE_EXTRA_CA_CERTS \(.*\); 5 calls/,
      )
    }
    expect(connections).toBe(5)
  })

  test('a wrong key costs a handful of calls; its tasks are cancelled, and run when it is right', async () => {
    const store = mkdtempSync(join(tmpdir(), 'mw-breaker-'))
    onTestFinished(() => rmSync(store, { recursive: true, force: true }))
    let asked = 0
    let accepts = false
    const baseURL = await serving((response) => {
      asked++
      if (accepts) response.end(WORDS)
      else response.writeHead(401).end('{"error":{"message":"Incorrect API key provided"}}')
    })
    const good = await answering()
    const tasks = [
      ...Array.from({ length: 200 }, (_, n) => asker.task({ model: 'bad', prompt: `${n}` }, { id: `bad-${n}` })),
      // The parent fails only because its sub-tasks did; and this agent hides the error in one of its own.
      ...[both.task({ model: 'bad' }, { id: 'both' }), vague.task({ model: 'bad' }, { id: 'vague' })],
      ...Array.from({ length: 5 }, (_, n) => asker.task({ model: 'good', prompt: `${n}` }, { id: `good-${n}` })),
    ]
    const lines: string[] = []
    const run = (which: { runId: string } | { resume: string }) =>
      Runners.runTask(tasks as TaskLike[], {
        ...{ store, workerNum: 2, maxAttempts: 2, ...which },
        models: {
          bad: { baseURL, model: 'm', via, requestsPerMinute: 1200 },
          good: { baseURL: good, model: 'm', via },
        },
      })
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0)
    const first = await run({ runId: `key-${via}` }).finally(() => write.mockRestore())
    const ends = (prefix: string) =>
      new Set(
        [...first].flatMap(([id, { status, error }]) => (id.startsWith(prefix) ? [`${status} ${error?.code}`] : [])),
      )
    for (const id of ['bad', 'both', 'vague']) expect([id, ...ends(id)]).toEqual([id, 'cancelled MODEL_UNAVAILABLE'])
    expect([...ends('good')]).toEqual(['success undefined'])
    // A handful, and those that were on their way when the last of it came back.
    expect(asked).toBeLessThan(20)
    const said = lines.filter((line) => line.includes('is not available'))
    expect(said).toEqual([expect.stringContaining("model 'bad' is not available: the server answered HTTP 401")])

    accepts = true
    const second = await run({ resume: `key-${via}` })
    expect([...second.values()].filter(({ success }) => !success)).toEqual([])
    expect(second.get('good-0')!.restored).toBe(true)
  })

  test('a server that is not there costs the retries of one call, not of every task', { timeout: 60_000 }, async () => {
    const responses = await run(questions(100), { baseURL: NOBODY, via, maxRetries: 2 })
    for (const { status, error } of responses.values())
      expect([status, error?.code]).toEqual(['cancelled', 'MODEL_UNAVAILABLE'])
    expect([...responses.values()][0]!.error!.message).toMatch(/ECONNREFUSED.*failed within 1\.1 s/)
  })

  test('a task that ends before its first call has begun does not hold up the next', { timeout: 60_000 }, async () => {
    const first = [hasty.task('never'), asker.task({ model: 'm' }, { timeoutMs: 20_000 })]
    const responses = await run(first, { baseURL: await answering(), via })
    expect([...responses.values()].map(({ answer, error }) => error?.message ?? answer)).toEqual([
      'gone',
      expect.objectContaining({ text: 'hi' }),
    ])
  })
})

test('a provider object with a wrong key is stopped too', async () => {
  let asked = 0
  const baseURL = await serving((response) => {
    asked++
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no such key"}}')
  })
  const models = { m: createOpenAICompatible({ name: 'theirs', baseURL })('m') }
  const responses = await Runners.runTask(questions(50), { workerNum: 1, store: false, models })
  for (const { status, error } of responses.values())
    expect([status, error?.code]).toEqual(['cancelled', 'MODEL_UNAVAILABLE'])
  expect(asked).toBe(5)
})
