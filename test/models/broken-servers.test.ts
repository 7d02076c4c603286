import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { Runners, type TaskLike } from '../../dist/index.js'
import type { ModelSettings } from '../../src/models/settings.ts'
import { asker, hasty } from '../agents/models.ts'
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

  test('a server whose certificate is not trusted is called once, and the error says what to do', async () => {
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
      expect(response!.error).toMatchObject({ code: 'MODEL_AUTHENTICATION', message: expect.stringMatching(words) })
      expect(response!.error!.message).toMatch(
        /correct `baseURL`, or trust its certificate with NODE_EXTRA_CA_CERTS \(.*\)$/,
      )
    }
    expect(connections).toBe(1)
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
