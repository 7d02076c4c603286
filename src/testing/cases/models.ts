import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ModelSettings } from '../../models/settings.ts'
import { runTask } from '../../runners/runners.ts'
import { asksModel } from '../asking-agents.ts'
import type { Case } from '../case.ts'

const CALL_MS = 300
const TASKS = 6

/** A model that repeats its prompt. Its second call fails. Reports the largest number of simultaneous calls. */
async function echoModel(): Promise<{ server: Server; baseURL: string; most: () => number; answered: () => number }> {
  let [calls, now, most, answered] = [0, 0, 0, 0]
  const server = createServer(async (request, response) => {
    most = Math.max(most, ++now)
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const { messages } = JSON.parse(String(Buffer.concat(parts))) as { messages: { content: string }[] }
    setTimeout(() => {
      now--
      if (++calls === 2) return response.writeHead(503).end('busy')
      answered++
      const message = { role: 'assistant', content: messages.at(-1)!.content }
      return response.end(JSON.stringify({ choices: [{ message, finish_reason: 'stop' }], usage: { total_tokens: 2 } }))
    }, CALL_MS)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { server, baseURL: `http://127.0.0.1:${port}/v1`, most: () => most, answered: () => answered }
}

const ways: readonly NonNullable<ModelSettings['via']>[] = ['driver', 'direct']

/** Calls of language models. */
export const modelCases: Case[] = ways.map((via) => ({
  name: `models are called (${via}) within their limits; the clock of a task stops while it waits for a permit`,
  async run(kit) {
    // On such an engine, only the driver can call the server of this case.
    if (via === 'direct' && !kit.sharesLoopback) return
    const { server, baseURL, most, answered } = await echoModel()
    try {
      const models = { echo: { baseURL, model: 'echo', via, maxConcurrent: 2, requestsPerMinute: 60_000 } }
      const tasks = Array.from({ length: TASKS }, (_, n) => asksModel.task(`question ${n}`, { timeoutMs: 60_000 }))
      const responses = [...(await runTask(tasks, kit.conf({ models }))).values()]
      assert.deepEqual(
        responses.map(({ answer, error }) => answer ?? error),
        tasks.map((_, n) => `question ${n}`),
      )
      assert.equal(answered(), TASKS)
      assert.ok(most() <= 2, `${most()} calls at once`)
      for (const { trajectory } of responses)
        assert.deepEqual(
          trajectory.map(({ kind }) => kind),
          ['model'],
        )
      // Twice as long if all tasks start together. On a slow machine they start one after the other.
      const waited = Math.max(...responses.map(({ timing }) => timing.waitedMs))
      assert.ok(waited > CALL_MS / 2, `the longest wait was ${waited} ms`)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  },
}))
