import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A server with OpenAI's interface whose "model" answers questions such as "A shop has 12 boxes of 9 pens. It sells 30." with two tool
 * calls and a text. It stands in for a real model, so that the pictures of the docs can be made anywhere and look alike each time.
 */
export async function startCountingModel(): Promise<{ readonly baseURL: string; close(): void }> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const asked = JSON.parse(body || '{}') as { readonly messages?: readonly Message[]; readonly model?: string }
      const { delayMs, ...answer } = answerTo(asked.messages ?? [], asked.model ?? '')
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(answer))
      }, delayMs)
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return { baseURL: `http://127.0.0.1:${port}/v1`, close: () => server.close() }
}

/** Forgets less often what was sold. */
export const CAREFUL = 'counting-2'

interface Message {
  readonly role: string
  readonly content: unknown
}

function answerTo(messages: readonly Message[], model: string) {
  const question = String(messages.find(({ role }) => role === 'user')?.content ?? '')
  const [boxes = 0, pens = 0, sold = 0] = (question.match(/\d+/g) ?? []).map(Number)
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => Number(content))
  const chance = hash(`${question} ${model}`)
  const forgets = chance % (model === CAREFUL ? 11 : 4) === 0
  // A few questions are too hard: their tasks run out of time.
  const delayMs = chance % 23 === 0 ? 60_000 : 60 + (chance % 240)
  if (results.length === 0)
    return reply(delayMs, `First the pens in all boxes: ${boxes} times ${pens}.`, ['multiply', { a: boxes, b: pens }])
  if (results.length === 1 && !forgets)
    return reply(delayMs, 'Now without those that were sold.', ['subtract', { a: results[0]!, b: sold }])
  const left = results.at(-1)!
  if (Number.isNaN(left)) return reply(delayMs, 'The shop cannot sell more pens than it has.\n\nAnswer: 0')
  const steps = forgets
    ? `- ${boxes} boxes of ${pens} pens are **${results[0]}** pens`
    : `- ${boxes} boxes of ${pens} pens are **${results[0]}** pens\n- ${sold} of them are sold`
  return reply(delayMs, `${steps}\n\nSo the shop has \`${left}\` pens left.\n\nAnswer: ${left}`)
}

function reply(delayMs: number, content: string, call?: readonly [name: string, args: object]) {
  const tokens = content.match(/\s*[A-Za-z]+|\s*\d|\s*\S|\s+/g) ?? []
  const calls = call && [
    { id: `call_${hash(content)}`, type: 'function', function: { name: call[0], arguments: JSON.stringify(call[1]) } },
  ]
  return {
    delayMs,
    ...{ id: `reply-${hash(content)}`, object: 'chat.completion', created: 0, model: 'counting-1' },
    choices: [
      {
        index: 0,
        finish_reason: calls ? 'tool_calls' : 'stop',
        message: { role: 'assistant', content, ...(calls && { tool_calls: calls }) },
        logprobs: {
          content: tokens.map((token, at) => ({
            token,
            logprob: -((hash(`${token}${at}`) % 100) / 40),
            bytes: null,
            top_logprobs: [],
          })),
        },
      },
    ],
    usage: {
      prompt_tokens: 120 + content.length,
      completion_tokens: tokens.length,
      total_tokens: 120 + content.length + tokens.length,
    },
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 2_166_136_261
  for (const letter of text) value = Math.imul(value ^ letter.codePointAt(0)!, 16_777_619) >>> 0
  return value
}
