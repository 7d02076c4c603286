import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventsOf, post } from './ask.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

/** Each way in which a scripted server fails, as a client sees it. */

const CHAT = '/v1/chat/completions'
/** Long enough to see that nothing comes. */
const SILENCE_MS = 500
/** Long enough for twenty requests to arrive on a busy machine. */
const WINDOW_MS = 8000

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterAll(() => server.close())

let number = 0
/** Faults are counted by body: each test has bodies of its own. */
const newBody = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: `request ${number++}` }],
  ...more,
})

const ask = (body: object, init: RequestInit = {}) => post(server.url, CHAT, body, init)
const recordOf = async ({ messages }: ReturnType<typeof newBody>) =>
  (await server.requests({ body: JSON.stringify(messages[0]!.content) })).at(-1)!

describe('statuses', () => {
  test.each([
    ['400', 400, null],
    ['401', 401, 'invalid_api_key'],
    ['404', 404, 'model_not_found'],
    ['context', 400, 'context_length_exceeded'],
    ['filter-400', 400, 'content_filter'],
  ])('%s comes every time', async (model, status, code) => {
    const body = newBody(model)
    for (let nth = 0; nth < 3; nth++) {
      const response = await ask(body)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ error: { message: expect.any(String), code } })
    }
  })

  test('too long a prompt as llama.cpp says it', async () => {
    const error = { type: 'exceed_context_size_error', n_ctx: 2048 }
    expect(await (await ask(newBody('context-llama'))).json()).toMatchObject({ error })
  })

  test('500:2+503+text fails three times for each body, then answers', async () => {
    const [one, other] = [newBody('500:2+503+text'), newBody('500:2+503+text')]
    const statuses: number[][] = []
    for (let nth = 0; nth < 4; nth++)
      statuses.push(await Promise.all([one, other].map(async (body) => (await ask(body)).status)))
    expect(statuses).toEqual([
      [500, 500],
      [500, 500],
      [503, 503],
      [200, 200],
    ])
  })

  test('429 without a header, with seconds, with milliseconds, with a date', async () => {
    const headers = async (model: string) => {
      const response = await ask(newBody(model))
      expect(response.status).toBe(429)
      return [response.headers.get('retry-after'), response.headers.get('retry-after-ms')]
    }
    expect(await headers('429')).toEqual([null, null])
    expect(await headers('429:1:after=2')).toEqual(['2', null])
    expect(await headers('429::after-ms=50')).toEqual([null, '50'])
    const [date] = await headers('429:3:after-date=30')
    expect(Date.parse(date!) - Date.now()).toBeGreaterThan(20_000)
  })

  test('a page in place of an answer, bad JSON, and nothing', async () => {
    const [page, portal] = [await ask(newBody('html')), await ask(newBody('html-200'))]
    expect([page.status, portal.status]).toEqual([502, 200])
    for (const response of [page, portal]) expect(await response.text()).toMatch(/^<html>/)
    await expect((await ask(newBody('garbage'))).json()).rejects.toThrow(SyntaxError)
    expect(await (await ask(newBody('empty'))).text()).toBe('')
  })

  test('a wrong key, a wrong path, a body that is not JSON, a scenario that does not exist', async () => {
    const own = await startModelServer({ apiKey: 'right' })
    onTestFinished(() => own.close())
    const status = async (key: string, path: string, body: unknown) =>
      (await post(own.url, path, body, { headers: { authorization: `Bearer ${key}` } })).status
    expect(await status('wrong', CHAT, newBody('text'))).toBe(401)
    expect(await status('right', CHAT, newBody('text'))).toBe(200)
    expect(await status('right', '/v1/responses', newBody('text'))).toBe(404)
    expect(await status('right', CHAT, '{')).toBe(400)
    const response = await ask(newBody('no-such-scenario'))
    expect(await response.json()).toMatchObject({ error: { code: 'unknown_scenario' } })
  })
})

describe('connections', () => {
  test.each(['cut', 'reset'])('%s: closed before any header', async (model) => {
    const body = newBody(model)
    await expect(ask(body)).rejects.toThrow('fetch failed')
    expect(await recordOf(body)).toMatchObject({ end: 'broken' })
    expect((await recordOf(body)).status).toBeUndefined()
    expect((await ask(body)).status).toBe(200)
  })

  test.each(['cut-body', 'reset-body', 'half'])('%s: closed in the middle of the body', async (model) => {
    for (const stream of [false, true]) {
      const body = newBody(`text:40+${model}`, { stream })
      const response = await ask(body)
      expect(response.status).toBe(200)
      expect(response.headers.has('content-length')).toBe(model === 'half')
      const read: string[] = []
      await expect(
        (async () => {
          for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) read.push(chunk)
        })(),
      ).rejects.toThrow()
      // A reset may overtake what was sent before it.
      if (model !== 'reset-body') expect(read.join('').length).toBeGreaterThan(50)
      expect(await recordOf(body)).toMatchObject({ status: 200, end: 'broken' })
    }
  })

  test('hang, hang-body: nothing comes, or nothing more', async () => {
    const leave = new AbortController()
    const body = newBody('hang')
    const never = ask(body, { signal: leave.signal })
    const begun = await ask(newBody('text:40+hang-body', { stream: true }), { signal: leave.signal })
    expect(begun.status).toBe(200)
    const outcomes = Promise.allSettled([never, begun.text()])
    await expect.poll(() => recordOf(body)).toMatchObject({ end: 'open' })
    expect(await Promise.race([outcomes, sleep(SILENCE_MS, 'silence')])).toBe('silence')
    leave.abort()
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } })
  })

  test('drip: an answer in pieces, with time between them', async () => {
    const began = performance.now()
    const response = await ask(newBody('text:40+drip:100'))
    expect(await response.json()).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
    expect(performance.now() - began).toBeGreaterThan(600)
  })
})

describe('streams', () => {
  test('eof: a clean end without [DONE] and without a finish reason', async () => {
    const text = await (await ask(newBody('text:40+eof', { stream: true }))).text()
    expect(text).toMatch(/^data: /)
    expect(text).not.toMatch(/\[DONE\]|"finish_reason":"/)
  })

  test('stream-error: an error after the first events', async () => {
    const events = eventsOf(await (await ask(newBody('text:40+stream-error', { stream: true }))).text())
    expect(JSON.parse(events.at(-2)!)).toMatchObject({ error: { type: 'server_error' } })
    expect(events.length).toBe(4)
    expect(await (await ask(newBody('stream-error'))).json()).toMatchObject({ error: { type: 'server_error' } })
  })
})

describe('rate limits', () => {
  test('a window of requests: 20 at once, 5 pass, and the next when the window has moved on', async () => {
    const own = await startModelServer({ window: { requests: 5, ms: WINDOW_MS } })
    onTestFinished(() => own.close())
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(own.url, CHAT, newBody('text'))))
    const rejected = responses.filter(({ status }) => status === 429)
    expect(rejected.length).toBe(15)
    const waitMs = Number(rejected[0]!.headers.get('retry-after-ms'))
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(WINDOW_MS)
    await new Promise((resolve) => setTimeout(resolve, waitMs + 20))
    expect((await post(own.url, CHAT, newBody('text'))).status).toBe(200)
    expect(await own.stats()).toMatchObject({ succeeded: 6, rateLimited: 15 })
  })

  test('a window of tokens counts prompts and answers', async () => {
    const own = await startModelServer({ window: { tokens: 300, ms: 60_000, retryAfter: 'seconds' } })
    onTestFinished(() => own.close())
    let used = 0
    for (;;) {
      const response = await post(own.url, CHAT, newBody('text:30'))
      const answer = (await response.json()) as { usage: { total_tokens: number } }
      if (response.status === 429) {
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(30)
        expect(response.headers.has('retry-after-ms')).toBe(false)
        break
      }
      used += answer.usage.total_tokens
    }
    expect(used).toBeGreaterThan(200)
    expect(used).toBeLessThanOrEqual(300)
  })

  test('a rejected request does not use up its faults', async () => {
    const own = await startModelServer({ window: { requests: 1, ms: 200, retryAfter: 'none' } })
    onTestFinished(() => own.close())
    const body = newBody('500+text')
    const statuses: number[] = []
    while (!statuses.includes(200)) statuses.push((await post(own.url, CHAT, body)).status)
    expect(statuses.filter((status) => status === 500).length).toBe(1)
  })
})

test('scripts: what the requests of a model get, one after the other', async () => {
  const own = await startModelServer({ scripts: { small: ['500', 'filter', '429:1:after-ms=10'] } })
  onTestFinished(() => own.close())
  const statuses: number[] = []
  for (let nth = 0; nth < 5; nth++) statuses.push((await post(own.url, CHAT, newBody('small'))).status)
  expect(statuses).toEqual([500, 200, 429, 200, 200])
  expect((await own.requests()).map(({ answeredBy }) => answeredBy)).toEqual([
    '500',
    'filter',
    '429:1:after-ms=10',
    'text',
    'text',
  ])
})
