import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isAlive } from '../../dist/is-alive.js'
import { freePort } from '../support/free-port.ts'
import { eventsOf, post } from './ask.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

/** The tests of models believe what this server says: here it is asked by plain fetch. */

const CHAT = '/v1/chat/completions'
const messages = [{ role: 'user', content: 'Add 1 and 2.' }]
const parameters = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'string' } } }
const tools = [{ type: 'function', function: { name: 'add', parameters } }]

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

interface TokenLogprob {
  readonly id?: number
  readonly token: string
  readonly logprob: number
}

interface Choice {
  readonly finish_reason: string
  readonly message: { content: string; tool_calls?: readonly Call[]; reasoning_content?: string; reasoning?: string }
  readonly delta: { content?: string; tool_calls?: readonly (Call & { index: number })[] }
  readonly text: string
  readonly logprobs: { content: readonly TokenLogprob[]; tokens: string[]; token_logprobs: number[] } | null
  readonly token_ids?: number[]
  readonly prompt_token_ids?: number[]
}

interface Answer {
  readonly id: string
  readonly choices: readonly Choice[]
  readonly prompt_token_ids?: number[]
  readonly usage?: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
    readonly prompt_tokens_details?: { readonly cached_tokens: number }
    readonly completion_tokens_details?: { readonly reasoning_tokens: number }
  }
}

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterAll(() => server.close())

async function chat(model: string, more: object = {}): Promise<Answer & { choice: Choice }> {
  const response = await post(server.url, CHAT, { model, messages, ...more })
  expect(response.status).toBe(200)
  const answer = (await response.json()) as Answer
  return { ...answer, choice: answer.choices[0]! }
}

const streamed = async (model: string, more: object = {}) =>
  eventsOf(await (await post(server.url, CHAT, { model, messages, stream: true, ...more })).text())

describe('contents', () => {
  test('text, by the request alone: another server says the same, one with another seed does not', async () => {
    const [same, other] = await Promise.all([startModelServer(), startModelServer({ seed: 1 })])
    onTestFinished(async () => void (await Promise.all([same.close(), other.close()])))
    const body = { model: 'text:20', messages, nonce: 1 }
    const texts = await Promise.all([server, same, other].map(async ({ url }) => (await post(url, CHAT, body)).text()))
    expect(JSON.parse(texts[0]!).choices[0].message.content.split(' ').length).toBe(20)
    expect(texts[1]).toBe(texts[0])
    expect(texts[2]).not.toBe(texts[0])
  })

  test('every answer has an id of its own', async () => {
    const answers = [await chat('text'), await chat('text'), await chat('echo')]
    expect(new Set(answers.map(({ id }) => id)).size).toBe(3)
  })

  test('tool calls for as many rounds as asked for, then text', async () => {
    const first = await chat('tools:2', { tools })
    const [call] = first.choice.message.tool_calls!
    expect(first.choice.finish_reason).toBe('tool_calls')
    expect(call!.function.name).toBe('add')
    expect(JSON.parse(call!.function.arguments)).toEqual({ a: expect.any(Number), b: expect.any(String) })
    const result = { role: 'tool', tool_call_id: call!.id, content: '3' }
    const second = await chat('tools:2', { tools, messages: [...messages, result] })
    expect(second.choice.message.tool_calls![0]!.id).not.toBe(call!.id)
    const third = await chat('tools:2', { tools, messages: [...messages, result, result] })
    expect(third.choice).toMatchObject({ finish_reason: 'stop', message: { content: 'done after 2 calls' } })
  })

  test('parallel tool calls, and bad ones beside a good one', async () => {
    expect((await chat('parallel:3', { tools })).choice.message.tool_calls!.length).toBe(3)
    const [good, unknown, broken, wrong] = (await chat('bad-tools', { tools })).choice.message.tool_calls!
    expect(JSON.parse(good!.function.arguments)).toEqual({ a: expect.any(Number), b: expect.any(String) })
    expect(unknown!.function.name).toBe('no-such-tool')
    expect(() => JSON.parse(broken!.function.arguments)).toThrow(SyntaxError)
    expect(JSON.parse(wrong!.function.arguments)).toEqual({ a: expect.any(String), b: expect.any(Number) })
  })

  test('structured output by its schema, of wrong types, and broken', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' }, size: { enum: ['big', 'small'] } } }
    const more = { response_format: { type: 'json_schema', json_schema: { name: 'city', schema } } }
    const say = async (model: string) => (await chat(model, more)).choice.message.content
    expect(JSON.parse(await say('json'))).toEqual({
      city: expect.any(String),
      size: expect.stringMatching(/big|small/),
    })
    expect(JSON.parse(await say('json-wrong'))).toMatchObject({ city: 7 })
    const broken = await say('json-broken')
    expect(() => JSON.parse(broken)).toThrow(SyntaxError)
  })

  test('reasoning under both names, a filter, and a limit that cuts', async () => {
    const { choice, usage } = await chat('reasoning')
    expect(choice.message.reasoning_content!.length).toBeGreaterThan(20)
    expect(usage!.completion_tokens_details!.reasoning_tokens).toBeGreaterThan(5)
    expect((await chat('reasoning:reasoning')).choice.message.reasoning).toBeTypeOf('string')
    expect((await chat('filter')).choice.finish_reason).toBe('content_filter')
    const cut = await chat('text:50', { max_tokens: 5 })
    expect(cut.choice.finish_reason).toBe('length')
    expect(cut.usage!.completion_tokens).toBe(5)
  })

  test('usage: plain, with cached tokens, none', async () => {
    const { usage } = await chat('text')
    expect(usage!.total_tokens).toBe(usage!.prompt_tokens + usage!.completion_tokens)
    expect((await chat('text+usage:cached')).usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(0)
    expect((await chat('text+usage:none')).usage).toBeUndefined()
  })

  test('token ids where each kind of server has them', async () => {
    const more = { logprobs: true, return_token_ids: true }
    const [openai, vllm, sglang, llama] = [
      await chat('text', more),
      await chat('text+vllm', more),
      await chat('text+sglang', more),
      await chat('text+llama', more),
    ]
    expect(openai.choice.token_ids ?? openai.prompt_token_ids ?? openai.choice.logprobs!.content[0]!.id).toBeUndefined()
    const said = openai.choice.logprobs!.content.map(({ token }) => token).join('')
    expect(said).toBe(openai.choice.message.content)
    expect(vllm.choice.token_ids!.length).toBe(vllm.usage!.completion_tokens)
    expect(vllm.choice.logprobs!.content.length).toBe(vllm.usage!.completion_tokens)
    expect(vllm.prompt_token_ids!.length).toBe(vllm.usage!.prompt_tokens)
    expect(sglang.choice.prompt_token_ids!.length).toBe(sglang.usage!.prompt_tokens)
    expect(llama.choice.logprobs!.content.map(({ id }) => id).length).toBe(llama.usage!.completion_tokens)
    expect(llama.choice.logprobs!.content.every(({ id }) => Number.isInteger(id))).toBe(true)
    expect((await chat('text+vllm')).choice).toMatchObject({ logprobs: null })
    expect((await chat('text+vllm')).choice.token_ids).toBeUndefined()
  })

  test('completions of token ids', async () => {
    const prompt = [5, 6, 7]
    const body = { model: 'text+vllm', prompt, max_tokens: 4, logprobs: 1, return_token_ids: true }
    const answer = (await (await post(server.url, '/v1/completions', body)).json()) as Answer
    const [choice] = answer.choices
    expect(choice!.prompt_token_ids).toEqual(prompt)
    expect(choice!.token_ids!.length).toBe(4)
    expect(choice!.logprobs!.token_logprobs.length).toBe(4)
    expect(choice!.logprobs!.tokens.join('')).toBe(choice!.text)
    expect(answer.usage!.prompt_tokens).toBe(3)
  })
})

describe('streams', () => {
  const parsed = (events: readonly string[]) => events.slice(0, -1).map((event) => JSON.parse(event) as Answer)

  test('say the same as whole answers, with usage only if asked for', async () => {
    const [first, second] = [
      await streamed('echo'),
      await streamed('echo', { stream_options: { include_usage: true } }),
    ]
    for (const events of [first, second]) {
      expect(events.at(-1)).toBe('[DONE]')
      const said = parsed(events).map(({ choices }) => choices[0]?.delta.content ?? '')
      expect(said.join('')).toBe('Add 1 and 2.')
    }
    expect(parsed(first).some(({ usage }) => usage)).toBe(false)
    expect(parsed(second).at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 4 } })
  })

  test('carry tool calls in pieces', async () => {
    const deltas = parsed(await streamed('bad-tools', { tools })).flatMap(
      ({ choices }) => choices[0]!.delta.tool_calls ?? [],
    )
    const args = [0, 1, 2, 3].map((index) =>
      deltas
        .filter((delta) => delta.index === index)
        .map((delta) => delta.function.arguments)
        .join(''),
    )
    expect(args[1]).toBe('{}')
    expect(args[2]).toBe('{"a": 1,')
    expect(JSON.parse(args[3]!)).toEqual({ a: 'of a wrong type', b: 7 })
  })

  test.each(['text', 'reasoning', 'tools', 'parallel'])('of %s carry the ids of a whole answer', async (content) => {
    const more = { tools, logprobs: true, return_token_ids: true }
    const events = parsed(await streamed(`${content}+vllm`, more))
    const ids = events.flatMap(({ choices }) => choices[0]!.token_ids ?? [])
    const logprobs = events.flatMap(({ choices }) => choices[0]!.logprobs?.content ?? [])
    expect(events[0]!.prompt_token_ids!.length).toBeGreaterThan(0)
    expect(ids.length).toBe(logprobs.length)
    expect(ids.at(-1)).toBe(50_000)
  })
})

describe('what it remembers', () => {
  test('every request with its exact body and headers, in order', async () => {
    const body = '{ "model":"text",\n "messages":[ {"role":"user","content":"exactly: é😀"} ] }'
    await (await post(server.url, CHAT, body, { headers: { 'x-test': 'one' } })).text()
    const [record, ...more] = await server.requests({ path: CHAT, model: 'text', body: 'exactly' })
    expect(more).toEqual([])
    expect(record).toMatchObject({ body, sha256: hash('sha256', body), status: 200, answeredBy: 'text', end: 'sent' })
    expect(record!.headers['x-test']).toBe('one')
    expect(Math.abs(Date.now() - record!.at)).toBeLessThan(60_000)
  })

  test('what succeeded, what was paid twice, and how many were in flight', async () => {
    const own = await startModelServer({ latencyMs: 3000 })
    onTestFinished(() => own.close())
    const models = ['text', 'text', 'echo', '500', '400', 'cut']
    await Promise.allSettled(models.map(async (model) => (await post(own.url, CHAT, { model, messages })).text()))
    await (await fetch(`${own.url}/v1/models`)).text()
    const twice = hash('sha256', JSON.stringify({ model: 'text', messages }))
    await expect.poll(own.stats).toEqual({
      requests: 7,
      succeeded: 3,
      rateLimited: 0,
      left: 0,
      inFlight: 0,
      maxInFlight: 6,
      byPath: { [CHAT]: 6, '/v1/models': 1 },
      byModel: { text: 2, echo: 1, 500: 1, 400: 1, cut: 1, none: 1 },
      byStatus: { 200: 4, 500: 1, 400: 1, none: 1 },
      paidTwice: { [twice]: 2 },
    })
  })

  test('who left before the answer', async () => {
    const own = await startModelServer()
    onTestFinished(() => own.close())
    const models = ['hang', 'hang-body', 'text+latency:60000', 'text:100+drip:60000']
    const leave = new AbortController()
    const calls = Promise.allSettled(
      models.map(async (model) => (await post(own.url, CHAT, { model, messages }, { signal: leave.signal })).text()),
    )
    await expect.poll(async () => (await own.stats()).requests).toBe(4)
    leave.abort()
    for (const { status } of await calls) expect(status).toBe('rejected')
    await expect.poll(async () => (await own.stats()).left).toBe(4)
    expect(await own.stats()).toMatchObject({ requests: 4, succeeded: 0, inFlight: 0 })
  })
})

describe('its process', () => {
  test('ends when it is closed', async () => {
    const own = await startModelServer()
    expect(isAlive(own.pid)).toBe(true)
    await own.close()
    expect(isAlive(own.pid)).toBe(false)
    await expect(own.stats()).rejects.toThrow()
    await own.close()
  })

  test('ends when the program that started it is killed', async () => {
    const module = JSON.stringify(new URL('scripted-server.ts', import.meta.url).href)
    const program = `const { startModelServer } = await import(${module}); console.log((await startModelServer()).pid); setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
    expect(isAlive(Number(line))).toBe(true)
    parent.kill('SIGKILL')
    await expect.poll(() => isAlive(Number(line))).toBe(false)
  })

  test('does not keep the program alive that started it', async () => {
    const module = JSON.stringify(new URL('scripted-server.ts', import.meta.url).href)
    const program = `const { startModelServer } = await import(${module}); await startModelServer()`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    onTestFinished(() => void parent.kill('SIGKILL'))
    expect(await once(parent, 'exit')).toEqual([0, null])
  })

  test('is a program of its own, on the port it is told', async () => {
    const script = fileURLToPath(new URL('scripted-server.ts', import.meta.url))
    const port = await freePort()
    const args = [script, '--port', String(port), '--options', '{"dialect": "llama"}']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    expect(url).toBe(`http://127.0.0.1:${port}`)
    const answer = (await (await post(url, CHAT, { model: 'text', messages, logprobs: true })).json()) as Answer
    expect(answer.choices[0]!.logprobs!.content[0]!.id).toBeTypeOf('number')
  })
})
