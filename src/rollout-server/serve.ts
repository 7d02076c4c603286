import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { bearerToken, TokenCheck } from '../network/bearer.ts'
import type { ServerTls } from '../network/gate.ts'
import { Problem } from '../network/http-problem.ts'
import type { AnsweredGroup } from './answer.ts'
import { problemOf } from './problem.ts'
import { type RolloutRequest, readRequest } from './request.ts'

const HEADERS_MS = 10_000
/** For receiving the body; the answer may take as long as the rollouts. */
const BODY_MS = 120_000
const MAX_HEADER_BYTES = 16 * 1024

export interface RolloutServerOptions {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly tls?: ServerTls | undefined
  readonly maxBodyBytes: number
  /** The maximum number of concurrent requests; others are refused. */
  readonly maxRequests: number
  /** The maximum number of rollouts of all concurrent requests, because their tokens are kept until they are answered. */
  readonly maxRollouts: number
  /** Runs the groups of a request; `signal` is aborted when the caller disconnects. */
  run(request: RolloutRequest, signal: AbortSignal): Promise<RolloutAnswer>
  log(line: string): void
}

export interface RolloutAnswer {
  /** The id of the run, and the path of its store; null if nothing is stored. */
  readonly run: string
  readonly store: string | null
  readonly groups: readonly AnsweredGroup[]
}

export interface RolloutServer {
  readonly port: number
  /** Accepts no more requests, and resolves when the current ones are answered. */
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
  const token = new TokenCheck(options.token)
  const state = { active: 0, rollouts: 0, closing: false }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response, options, token, state).catch((error: unknown) => {
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
  active: number
  /** The rollouts of active requests. */
  rollouts: number
  closing: boolean
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: RolloutServerOptions,
  token: TokenCheck,
  state: State,
): Promise<void> {
  const path = request.url?.split('?', 1)[0]
  // Any web page may send requests to this machine; browsers then send an Origin header.
  if (request.headers.origin !== undefined)
    throw new Problem(403, 'FORBIDDEN', 'requests from browsers (with an Origin header) are not allowed')
  if (path === '/health') {
    allowOnly(request, 'GET')
    return answerJson(response, 200, { ok: true })
  }
  if (path !== '/v1/rollouts')
    throw new Problem(404, 'NOT_FOUND', `${path} not found; available: GET /health, POST /v1/rollouts`)
  checkToken(request, token)
  allowOnly(request, 'POST')
  if (state.closing) throw new Problem(503, 'STOPPED', 'the server is shutting down')
  if (state.active >= options.maxRequests)
    throw new Problem(503, 'BUSY', `the limit of ${state.active} concurrent requests is reached; try again later`)
  state.active++
  let rollouts = 0
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new Error('the caller disconnected'))
  })
  try {
    const asked = readRequest(await bodyOf(request, options.maxBodyBytes))
    rollouts = admit(asked, options.maxRollouts, state)
    const answer = await options.run(asked, gone.signal)
    if (state.closing) response.setHeader('connection', 'close')
    if (!gone.signal.aborted) await answerGroups(response, answer)
  } finally {
    state.active--
    state.rollouts -= rollouts
  }
}

/** Counts the rollouts of a request, before anything is made of them. */
function admit({ tasks, rollouts }: RolloutRequest, most: number, state: State): number {
  const count = tasks.length * rollouts
  const asked = `${tasks.length} tasks with ${rollouts} rollouts each are ${count} rollouts`
  if (count > most)
    throw new Problem(
      413,
      'TOO_MANY_ROLLOUTS',
      `${asked}, but the limit is ${most} (--max-rollouts); send several requests, or raise the limit`,
    )
  if (state.rollouts + count > most)
    throw new Problem(
      503,
      'BUSY',
      `${asked}, and other requests have ${state.rollouts}, but the limit is ${most} at once (--max-rollouts); try again later`,
    )
  state.rollouts += count
  return count
}

function allowOnly({ method, url }: IncomingMessage, allowed: string): void {
  if (method !== allowed)
    throw new Problem(405, 'METHOD_NOT_ALLOWED', `${url} does not support ${method}; use ${allowed}`)
}

function checkToken({ headers }: IncomingMessage, expected: TokenCheck): void {
  const token = bearerToken(headers.authorization)
  if (token === undefined)
    throw new Problem(401, 'UNAUTHORIZED', 'the token is missing; send `authorization: Bearer TOKEN`')
  if (!expected.accepts(token))
    throw new Problem(401, 'UNAUTHORIZED', 'the token is not the one that the server was started with')
}

function bodyOf(request: IncomingMessage, most: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let bytes = 0
    // The rest of a body that is too large is read and discarded, because closing the connection while the caller still
    // writes would lose the response.
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= most) return void parts.push(part)
      parts.length = 0
      reject(new Problem(413, 'BODY_TOO_LARGE', `the body is larger than ${most} bytes (--max-body)`))
    })
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.on('error', reject)
  })
}

/** Written group by group, because all groups could exceed the maximum string length. */
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
  for (const [index, group] of groups.entries()) {
    if (response.destroyed) return
    await write(`${JSON.stringify(group)}${index < length - 1 ? ',' : ''}`)
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
