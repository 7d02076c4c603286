import { hash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { wordsOf } from '../../../text/thrown.ts'
import { SidecarLost } from './engine.ts'
import { Refusal } from './refusal.ts'

/** Conversations of a hundred thousand tokens, with their ids. */
const MAX_BODY_BYTES = 64 * 1024 * 1024
const BODY_MS = 60_000
const RETRY_AFTER_S = 1

export type Route = (body: string, signal: AbortSignal) => Promise<object>

export interface Listening {
  readonly port: number
  close(): Promise<void>
}

/** Serves JSON on loopback to whoever knows the token. Routes by `METHOD path`. */
export async function listen(token: string, routes: ReadonlyMap<string, Route>): Promise<Listening> {
  const server = createServer({ requestTimeout: BODY_MS }, (request, response) => {
    void serve(request, response, token, routes)
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // It serves this process and its workers: it does not keep them alive.
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
  response.on('close', () => gone.abort(new Error('the client went away'))).on('error', () => {})
  try {
    if (!isAllowed(request.headers.authorization, token))
      throw new Refusal(401, 'the token is missing or wrong: send `authorization: Bearer TOKEN`')
    const route = routeOf(request, routes)
    const answer = await route(await bodyOf(request), gone.signal)
    send(response, 200, answer)
  } catch (error) {
    if (gone.signal.aborted) return
    const { status, message, type } = refusalOf(error)
    if (status === 429 || status === 503) response.setHeader('retry-after', RETRY_AFTER_S)
    // What is left of a body that nobody reads would be taken for the next request.
    if (!request.complete) response.setHeader('connection', 'close')
    send(response, status, { error: { message, type, param: null, code: null } })
  }
}

/** Hashes have one length: how long it takes says nothing. */
const isAllowed = (header: string | undefined, token: string): boolean =>
  timingSafeEqual(hash('sha256', header ?? '', 'buffer'), hash('sha256', `Bearer ${token}`, 'buffer'))

function routeOf({ method = '', url = '' }: IncomingMessage, routes: ReadonlyMap<string, Route>): Route {
  const path = url.split('?', 1)[0]!
  const route = routes.get(`${method} ${path}`)
  if (route) return route
  const others = [...routes.keys()].filter((name) => name.endsWith(` ${path}`))
  if (others.length > 0) throw new Refusal(405, `${path} takes ${others[0]!.split(' ')[0]}, not ${method}`)
  throw new Refusal(404, `there is no ${path} here; there are: ${[...routes.keys()].join(', ')}`)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Refusal(413, `the body has more than ${MAX_BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  // What Python printed is behind the first line, for whoever reads logs.
  const [message = ''] = wordsOf(error).message.split('\n', 1)
  return new Refusal(error instanceof SidecarLost ? 503 : 500, message)
}

function send(response: ServerResponse, status: number, answer: object): void {
  const text = JSON.stringify(answer)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
