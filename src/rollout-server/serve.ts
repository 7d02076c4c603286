import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ServerTls } from '../network/gate.ts'
import type { AnsweredGroup } from './answer.ts'
import { Problem, problemOf } from './problem.ts'
import { type RolloutRequest, readRequest } from './request.ts'

const HEADERS_MS = 10_000
/** For a whole body; the answer may take as long as the rollouts do. */
const BODY_MS = 120_000
const MAX_HEADER_BYTES = 16 * 1024

export interface RolloutServerOptions {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly tls?: ServerTls | undefined
  readonly maxBodyBytes: number
  /** Requests at once; more are sent away. */
  readonly maxRequests: number
  /** Runs the groups of a request; `signal` is aborted when the caller goes away. */
  run(request: RolloutRequest, signal: AbortSignal): Promise<RolloutAnswer>
  log(line: string): void
}

export interface RolloutAnswer {
  /** The run of the store that has these rollouts, and the file that it is in; null: nothing is stored. */
  readonly run: string
  readonly store: string | null
  readonly groups: readonly AnsweredGroup[]
}

export interface RolloutServer {
  readonly port: number
  /** Takes no more requests, and resolves when those that it has are answered. */
  close(): Promise<void>
}

/** Serves rollouts over HTTP. */
export async function serveRollouts(options: RolloutServerOptions): Promise<RolloutServer> {
  const { tls, host, port } = options
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: BODY_MS, maxHeaderSize: MAX_HEADER_BYTES }
  const server: Server = tls
    ? createTlsServer({
        ...{ ...limits, cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' },
        ...(tls.clientCa !== undefined && { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
      })
    : createServer(limits)
  const digest = digestOf(options.token)
  const state = { going: 0, closing: false }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response, options, digest, state).catch((error: unknown) => {
      const problem = problemOf(error)
      if (problem.status >= 500) options.log(`${request.method} ${request.url}: ${problem.code}: ${problem.message}`)
      answerProblem(response, problem)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        state.closing = true
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}

interface State {
  going: number
  closing: boolean
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: RolloutServerOptions,
  digest: Buffer,
  state: State,
): Promise<void> {
  const path = request.url?.split('?', 1)[0]
  // Every web page may send requests to this machine. Browsers say that they are one.
  if (request.headers.origin !== undefined) throw new Problem(403, 'FORBIDDEN', 'a browser has no business here')
  if (path === '/health') {
    allowOnly(request, 'GET')
    return answerJson(response, 200, { ok: true })
  }
  if (path !== '/v1/rollouts')
    throw new Problem(404, 'NOT_FOUND', `there is nothing at ${path}; there are GET /health and POST /v1/rollouts`)
  checkToken(request, digest)
  allowOnly(request, 'POST')
  if (state.closing) throw new Problem(503, 'STOPPED', 'the server is being stopped')
  if (state.going >= options.maxRequests)
    throw new Problem(503, 'BUSY', `${state.going} requests are under way, which is the limit; try again later`)
  state.going++
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new Error('the caller went away'))
  })
  try {
    const asked = readRequest(await bodyOf(request, options.maxBodyBytes))
    const answer = await options.run(asked, gone.signal)
    if (state.closing) response.setHeader('connection', 'close')
    if (!gone.signal.aborted) await answerGroups(response, answer)
  } finally {
    state.going--
  }
}

function allowOnly({ method, url }: IncomingMessage, allowed: string): void {
  if (method !== allowed) throw new Problem(405, 'METHOD_NOT_ALLOWED', `${url} takes ${allowed}, not ${method}`)
}

const digestOf = (text: string) => createHash('sha256').update(text).digest()

function checkToken({ headers }: IncomingMessage, digest: Buffer): void {
  const [, token] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? []
  if (token === undefined)
    throw new Problem(401, 'UNAUTHORIZED', 'send the token of the server: authorization: Bearer …')
  if (!timingSafeEqual(digestOf(token), digest))
    throw new Problem(401, 'UNAUTHORIZED', 'this is not the token that the server was started with')
}

function bodyOf(request: IncomingMessage, most: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let bytes = 0
    // What comes after too much is read and forgotten: a connection that is cut while it is written to loses the answer.
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= most) return void parts.push(part)
      parts.length = 0
      reject(new Problem(413, 'BODY_TOO_LARGE', `the body may have at most ${most} bytes (--max-body)`))
    })
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.on('error', reject)
  })
}

/** Group by group: all of them in one text could be more than a string can hold. */
async function answerGroups(response: ServerResponse, { groups, ...head }: RolloutAnswer): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  const { length } = groups
  const write = async (text: string) => {
    if (!response.write(text) && !response.destroyed)
      await new Promise<void>((resolve) => {
        response.once('drain', resolve)
        response.once('close', resolve)
      })
  }
  await write(`${JSON.stringify(head).slice(0, -1)},"groups":[`)
  for (const [place, group] of groups.entries()) {
    if (response.destroyed) return
    await write(`${JSON.stringify(group)}${place < length - 1 ? ',' : ''}`)
  }
  response.end(']}\n')
}

function answerJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`)
}

function answerProblem(response: ServerResponse, { status, code, message }: Problem): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  response.setHeader('connection', 'close')
  if (status === 401) response.setHeader('www-authenticate', 'Bearer')
  answerJson(response, status, { error: { code, message } })
}
