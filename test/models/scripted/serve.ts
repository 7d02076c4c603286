import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Api, streamedAnswer, wholeAnswer, withStreamError } from './answer.ts'
import { completionOf, totalTokens } from './completion.ts'
import { CONTENTS } from './content.ts'
import { Journal } from './journal.ts'
import { errorPayload, jsonPayload, type Payload } from './payload.ts'
import { randomOf } from './random.ts'
import { parseBody, type RequestBody } from './request.ts'
import { type Dialect, readScenario, type Scenario } from './scenario.ts'
import { type Delivery, send, wasBrokenOff } from './send.ts'
import { strictProblem } from './strict.ts'
import { retryHeaders, slidingWindow, type WindowOptions } from './window.ts'

export interface ModelServerOptions {
  /** Default: one that is free. */
  readonly port?: number
  /** Default: 0. */
  readonly seed?: number
  /** Default: `openai`. */
  readonly dialect?: Dialect
  /** Before each answer, half to one and a half times as long. Default: 0. */
  readonly latencyMs?: number
  /** Other keys get a 401. Default: any key, or none. */
  readonly apiKey?: string
  readonly window?: WindowOptions
  /** After so many answers of models, the others wait for `release`. Default: none does. */
  readonly holdAfter?: number
  /** By model: what its requests get, one after the other, and then plain text. Other models name their scenario themselves. */
  readonly scripts?: Readonly<Record<string, readonly string[]>>
}

const APIS: Readonly<Record<string, Api>> = { '/v1/chat/completions': 'chat', '/v1/completions': 'text' }
/** How the test asks what has happened. */
export const ASK = { requests: '/_scripted/requests', stats: '/_scripted/stats', release: '/_scripted/release' }
const ID_CHARS = 12
const KEEP_ALIVE_MS = 60_000

/** How one request is answered. */
interface Reply extends Delivery {
  readonly answeredBy: string
  readonly waitMs: number
  /** What the model said, whole and right: a call that costs money. */
  readonly succeeds: boolean
}

const replyWith = (answeredBy: string, payload: Payload): Reply => ({
  answeredBy,
  payload,
  dripMs: 0,
  waitMs: 0,
  broken: undefined,
  succeeds: false,
})

const INVALID_KEY = errorPayload(401, 'Incorrect API key provided', 'invalid_api_key')
const MODELS = jsonPayload(200, { object: 'list', data: [{ id: 'text', object: 'model' }] })

export function createModelServer(options: ModelServerOptions): Server {
  const { seed = 0, dialect = 'openai', latencyMs = 0, scripts = {}, window, holdAfter = Infinity } = options
  const journal = new Journal()
  const admit = window === undefined ? undefined : slidingWindow(window)
  const released = Promise.withResolvers<void>()
  let answers = 0

  /** It depends on the body, and on how often that came before: not on when, nor on what else came. */
  function replyOfModel(api: Api, body: RequestBody, sha256: string): Reply {
    const name = body.model ?? ''
    const keys = { model: `model ${name}`, body: `body ${name} ${sha256}` }
    const nth = journal.seen(keys.body)
    const script = Object.hasOwn(scripts, name) ? scripts[name] : undefined
    const text = script === undefined ? name : (script[journal.seen(keys.model)] ?? 'text')
    const refused = strictProblem(body)
    if (refused !== undefined) return replyWith('schema', errorPayload(400, refused, 'invalid_request_error'))
    let scenario: Scenario
    try {
      scenario = readScenario(text, script === undefined ? nth : 0, { dialect, latencyMs })
    } catch (error) {
      return replyWith('unknown scenario', errorPayload(400, (error as Error).message, 'unknown_scenario'))
    }
    const id = `${sha256.slice(0, ID_CHARS)}-${nth}`
    const random = randomOf(seed, sha256, nth)
    const waitMs = scenario.latencyMs * (0.5 + random())
    const content = CONTENTS[scenario.content.name]!({ body, id, random }, scenario.content.arg)
    const completion = completionOf(content, body)
    const full = admit?.(totalTokens(completion), performance.now())
    if (full !== undefined) {
      const headers = retryHeaders(full.afterMs, window!)
      return replyWith('window', errorPayload(429, 'Rate limit reached', 'rate_limit_exceeded', headers))
    }
    for (const key of Object.values(keys)) journal.count(key)
    const answering = { api, id: `${api === 'chat' ? 'chatcmpl' : 'cmpl'}-${id}`, body, scenario, completion }
    const answer = body.stream === true ? streamedAnswer(answering) : wholeAnswer(answering)
    const { fault, dripMs } = scenario
    return {
      answeredBy: text,
      payload:
        fault?.kind === 'instead' ? fault.payload : fault?.kind === 'stream-error' ? withStreamError(answer) : answer,
      dripMs,
      waitMs,
      broken: fault?.kind === 'ending' ? fault : undefined,
      succeeds: fault === undefined,
    }
  }

  function replyTo(path: string, key: string | undefined, body: RequestBody | undefined, sha256: string): Reply {
    if (options.apiKey !== undefined && key !== `Bearer ${options.apiKey}`) return replyWith('key', INVALID_KEY)
    if (path === '/v1/models') return replyWith('models', MODELS)
    const api = APIS[path]
    if (api === undefined) return replyWith('path', errorPayload(404, `there is no ${path}`))
    if (body === undefined) return replyWith('body', errorPayload(400, 'the body is not a JSON object'))
    return replyOfModel(api, body, sha256)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (pathname === ASK.stats) return send(response, replyWith('', jsonPayload(200, journal.stats())))
    if (pathname === ASK.release) {
      released.resolve()
      return send(response, replyWith('', jsonPayload(200, {})))
    }
    if (pathname === ASK.requests)
      return send(response, replyWith('', jsonPayload(200, journal.requests(Object.fromEntries(searchParams)))))

    const bytes = Buffer.concat(chunks)
    const body = parseBody(bytes.toString('utf8'))
    const entry = journal.add({ path: pathname, headers: request.headers, model: body?.model, bytes })
    response.once('close', () =>
      journal.close(entry, wasBrokenOff(response) ? 'broken' : response.writableFinished ? 'sent' : 'left'),
    )
    const reply = replyTo(pathname, request.headers.authorization, body, entry.sha256)
    entry.answeredBy = reply.answeredBy
    entry.succeeded = reply.succeeds
    if (reply.waitMs > 0) await sleep(reply.waitMs)
    if (response.destroyed) return
    if (reply.succeeds && ++answers > holdAfter) await Promise.race([released.promise, once(response, 'close')])
    if (response.destroyed) return
    if (reply.broken?.at !== 'headers') entry.status = reply.payload.status
    await send(response, reply)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      // Unless the client left while it sent its request, this is a mistake here, and must be seen.
      if (!request.destroyed || request.complete) process.stderr.write(`model server: ${(error as Error).stack}\n`)
      response.destroy()
    })
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  return server
}
