import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { showAddress } from '../network/address.ts'
import type { ServerTls } from '../network/gate.ts'
import { Problem } from '../network/http-problem.ts'
import { ownPackage } from '../own-package.ts'
import type { Start } from './api.ts'
import { Access } from './http/access.ts'
import { answerJson, apiError, problemOf } from './http/answers.ts'
import { answerFile, answerPage, answerText, isFile } from './http/pages.ts'
import { Query } from './http/query.ts'
import { routes } from './http/routes.ts'
import type { Place } from './read/place.ts'
import { Viewer } from './viewer.ts'

const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
const MAX_HEADER_BYTES = 16 * 1024
const MAX_URL_CHARS = 8 * 1024
const MAX_CONNECTIONS = 256

export interface ViewServerOptions {
  readonly place: Place
  /** The page to open first, such as `#/run/ID`. */
  readonly route: string
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  readonly token: string
  readonly tls?: ServerTls | undefined
}

export interface ViewServer {
  readonly port: number
  /** The address of the page, with the token. */
  readonly url: string
  /** The address of the page with a code for one use within two minutes, for the arguments of a program. */
  codeUrl(): string
  close(): Promise<void>
}

/**
 * Keeps V8 from growing its heap early. The server reads much data and keeps little of it. With V8's defaults, garbage
 * stays in memory for long: 230 MB instead of 140 MB after a search through 1,000,000 steps. Call it before anything is
 * read.
 */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=20')
}

/** Serves the viewer. Rejects if it cannot listen. */
export async function serveViewer(options: ViewServerOptions): Promise<ViewServer> {
  const { tls, host, place, route, token } = options
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, maxHeaderSize: MAX_HEADER_BYTES }
  const server: Server = tls
    ? createTlsServer({ ...limits, cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' })
    : createServer(limits)
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const viewer = new Viewer(place)
  const secure = tls !== undefined
  const access = new Access({ host, port, secure, token })
  const start: Start = { manyworlds: ownPackage.version, place: place.path, route }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response, { viewer, access, start }).catch((error: unknown) =>
      answerProblem(request, response, error),
    )
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  // The wildcard addresses 0.0.0.0 and :: cannot be opened from other machines, so the host name is shown instead.
  const shown = showAddress({ host: host === '0.0.0.0' || host === '::' ? hostname() : host, port })
  const page = `${secure ? 'https' : 'http'}://${shown}/`
  return {
    port,
    url: `${page}?token=${encodeURIComponent(token)}`,
    codeUrl: () => `${page}?code=${access.newCode()}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          viewer[Symbol.dispose]()
          resolve()
        })
        server.closeAllConnections()
      }),
  }
}

interface Served {
  readonly viewer: Viewer
  readonly access: Access
  readonly start: Start
}

async function handle(request: IncomingMessage, response: ServerResponse, { viewer, access, start }: Served) {
  access.checkHeaders(request)
  const { url = '/' } = request
  if (url.length > MAX_URL_CHARS)
    throw new Problem(414, 'URI_TOO_LONG', `the URL has more than ${MAX_URL_CHARS} characters`)
  const { pathname, searchParams } = parsed(url)
  if (!pathname.startsWith('/api/')) {
    // Files of the page are public: they are part of the package.
    if (isFile(pathname)) return await answerFile(request, response, pathname)
    return await answerPage(request, response, access.checkPage(request, searchParams))
  }
  access.check(request)
  const route = Object.hasOwn(routes, pathname.slice(5)) ? routes[pathname.slice(5)] : undefined
  if (route === undefined) throw new Problem(404, 'NOT_FOUND', `${pathname.slice(0, 100)} not found`)
  if (request.method === 'HEAD') return void response.writeHead(200).end()
  const gone = new AbortController()
  response.once('close', () => gone.abort(new Error('the client disconnected')))
  const lastEventId = request.headers['last-event-id']
  await route({
    ...{ viewer, start, query: new Query(searchParams), response, signal: gone.signal },
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  })
}

function parsed(url: string): URL {
  try {
    return new URL(url, 'http://here')
  } catch {
    throw new Problem(400, 'BAD_REQUEST', 'the URL is malformed')
  }
}

function answerProblem(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  if (response.headersSent) return void response.destroy()
  const problem = problemOf(error)
  if (request.url?.startsWith('/api/')) answerJson(response, problem.status, { error: apiError(problem) })
  else answerText(request, response, problem.status, problem.message)
}
