import { createServer } from 'node:http'

/**
 * A server with a limit, in a process of its own: so many requests, and so many tokens, in any second. It answers after 50 to
 * 150 ms, refuses at once with 429 and `retry-after-ms`, and counts both.
 */

/** What the server has seen: when, since it started; the tokens of a request that it accepted, -1 if it refused. */
export interface Seen {
  readonly at: number
  readonly tokens: number
}

const WINDOW_MS = 1000
const [requestLimit, tokenLimit] = process.argv.slice(2).map(Number) as [number, number]
const window: Seen[] = []
const seen: Seen[] = []
let used = 0

const server = createServer(async (request, response) => {
  // Callers load their HTTP client and open connections before they begin.
  if (request.method === 'GET') {
    response.end()
    return
  }
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { cost } = JSON.parse(String(Buffer.concat(chunks))) as { cost: number }
  const at = performance.now()
  while (window.length > 0 && window[0]!.at <= at - WINDOW_MS) used -= window.shift()!.tokens
  if (window.length >= requestLimit || used + cost > tokenLimit) {
    seen.push({ at, tokens: -1 })
    const waitMs = Math.ceil(WINDOW_MS - (at - window[0]!.at))
    response.writeHead(429, { 'retry-after-ms': waitMs }).end('{}')
    return
  }
  window.push({ at, tokens: cost })
  seen.push({ at, tokens: cost })
  used += cost
  const reply = {
    choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
    usage: { total_tokens: cost },
  }
  setTimeout(() => response.end(JSON.stringify(reply)), 50 + Math.random() * 100)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!((server.address() as { port: number }).port))
process.on('message', () => process.send!(seen))
process.on('disconnect', () => process.exit())
