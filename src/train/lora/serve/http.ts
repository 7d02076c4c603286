import { hash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { wordsOf } from '../../../text/thrown.ts'
import { SidecarLost } from './engine.ts'
import { Refusal } from './refusal.ts'

/** Enough for conversations of a hundred thousand tokens, with their ids. */
const MAX_BODY_BYTES = 64 * 1024 * 1024
const BODY_MS = 60_000
const RETRY_AFTER_S = 1

export type Route = (body: string, signal: AbortSignal) => Promise<object>

export interface Listening {
  readonly port: number
  close(): Promise<void>
}

/** Serves JSON on loopback to clients that have the token. Routes by `METHOD path`. */
export async function listen(token: string, routes: ReadonlyMap<string, Route>): Promise<Listening> {
  const server = createServer({ requestTimeout: BODY_MS }, (request, response) => {
    void serve(request, response, token, routes)
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // The server must not keep this process alive.
  server.unref()
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  token: string,
  routes: ReadonlyMap<string, Route>,
): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort(new Error('the client disconnected'))).on('error', () => {})
  try {
    if (!isAllowed(request.headers.authorization, token))
      throw new Refusal(401, 'the token is missing or wrong; send `authorization: Bearer TOKEN`')
    const route = routeOf(request, routes)
    const answer = await route(await bodyOf(request), gone.signal)
    send(response, 200, answer)
  } catch (error) {
    if (gone.signal.aborted) return
    const { status, message, type } = refusalOf(error)
    if (status === 429 || status === 503) response.setHeader('retry-after', RETRY_AFTER_S)
    // The unread rest of the body would be parsed as the next request.
    if (!request.complete) response.setHeader('connection', 'close')
    send(response, status, { error: { message, type, param: null, code: null } })
  }
}

/** Hashes have equal length, so the comparison takes constant time. */
const isAllowed = (header: string | undefined, token: string): boolean =>
  timingSafeEqual(hash('sha256', header ?? '', 'buffer'), hash('sha256', `Bearer ${token}`, 'buffer'))

function routeOf({ method = '', url = '' }: IncomingMessage, routes: ReadonlyMap<string, Route>): Route {
  const path = url.split('?', 1)[0]!
  const route = routes.get(`${method} ${path}`)
  if (route) return route
  const others = [...routes.keys()].filter((name) => name.endsWith(` ${path}`))
  if (others.length > 0) throw new Refusal(405, `${path} does not support ${method}; use ${others[0]!.split(' ')[0]}`)
  throw new Refusal(404, `${path} not found; available: ${[...routes.keys()].join(', ')}`)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Refusal(413, `the body is larger than ${MAX_BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  // Only the first line; the rest is Python's output.
  const [message = ''] = wordsOf(error).message.split('\n', 1)
  return new Refusal(error instanceof SidecarLost ? 503 : 500, message)
}

function send(response: ServerResponse, status: number, answer: object): void {
  const text = JSON.stringify(answer)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
