import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createGrpcTransport, type GrpcTransportOptions, Http2SessionManager } from '@connectrpc/connect-node'
import { type ClientTls, tlsOptions } from '../../../network/dial.ts'
import { TOO_SLOW } from './errors.ts'
import { SparkConnectService } from './generated/spark_connect_pb.ts'
import { bracketed, isSecure, type Remote } from './remote.ts'

type SparkClient = Client<typeof SparkConnectService>

type SessionManager = NonNullable<GrpcTransportOptions['sessionManager']>

const CONNECT_MS = 15_000
// The same as in pyspark. A server may close a connection that pings too often.
const PING_MS = 60_000
const PING_ANSWER_MS = 20_000
/** The HTTP/2 receive window. The default of 64 kB is slow on connections with high latency. */
const WINDOW_BYTES = 1 << 20
/** Node refuses requests on a session with more than 10 MB of memory by default. */
const SESSION_MEMORY_MB = 1024

/** The HTTP/2 connection to a server: made on first use, and again after it broke. */
export class Connection implements SessionManager {
  readonly authority: string
  readonly secure: boolean
  readonly client: SparkClient
  /** Whether the server has ever answered. */
  proven = false
  readonly #manager: Http2SessionManager
  readonly #sessions = new Set<ClientHttp2Session>()
  readonly #streams = new Set<ClientHttp2Stream>()
  #keepsAlive = true
  #closed = false

  constructor(remote: Remote, tls: ClientTls | undefined) {
    this.secure = isSecure(remote, tls)
    const url = `${this.secure ? 'https' : 'http'}://${bracketed(remote.host)}:${remote.port}`
    const settings = { initialWindowSize: WINDOW_BYTES, enablePush: false }
    this.#manager = new Http2SessionManager(
      url,
      { pingIntervalMs: PING_MS, pingTimeoutMs: PING_ANSWER_MS },
      { settings, maxSessionMemory: SESSION_MEMORY_MB, ...(this.secure ? tlsOptions(tls) : {}) },
    )
    this.authority = this.#manager.authority
    const interceptors = [withHeaders(remote)]
    this.client = createClient(
      SparkConnectService,
      createGrpcTransport({ baseUrl: url, sessionManager: this, interceptors }),
    )
  }

  async request(...args: Parameters<SessionManager['request']>): Promise<ClientHttp2Stream> {
    if (this.#closed) throw new ConnectError('the session is closed', Code.FailedPrecondition)
    await this.#connect()
    const stream = await this.#manager.request(...args)
    if (stream.session !== undefined) this.#adopt(stream.session as ClientHttp2Session)
    this.#streams.add(stream)
    stream.once('close', () => {
      this.#streams.delete(stream)
      this.#abortIfDone()
    })
    if (this.#closed) stream.destroy(closed())
    return stream
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    this.proven = true
    this.#manager.notifyResponseByteRead(stream)
  }

  /** Whether a pending request keeps the process alive. An idle connection never does. */
  keepAlive(alive: boolean): void {
    this.#keepsAlive = alive
    for (const session of this.#sessions)
      if (!alive) session.unref()
      else if (this.#manager.state() === 'open') session.ref()
  }

  get keepsAlive(): boolean {
    return this.#keepsAlive
  }

  close(): void {
    this.#closed = true
    for (const stream of this.#streams) stream.destroy(closed())
    this.#abortIfDone()
  }

  /** If a stream closes after the abort, the manager starts an idle timer that keeps the connection in memory for 15 minutes. */
  #abortIfDone(): void {
    if (this.#closed && this.#streams.size === 0) this.#manager.abort()
  }

  /** Connects with a time limit: the system's own is minutes if a machine does not answer. */
  async #connect(): Promise<void> {
    const state = this.#manager.state()
    if (state === 'open' || state === 'idle' || state === 'verifying') return
    const timer = setTimeout(() => this.#manager.abort(new ConnectError(TOO_SLOW, Code.Unavailable)), CONNECT_MS)
    if (!this.#keepsAlive) timer.unref()
    const made = await this.#manager.connect()
    clearTimeout(timer)
    // Another request may already be retrying; then the error is gone.
    if (made === 'error') throw this.#manager.error() ?? new ConnectError('no connection', Code.Unavailable)
    if (this.#closed) this.#manager.abort()
  }

  #adopt(session: ClientHttp2Session): void {
    if (!this.#keepsAlive) session.unref()
    if (this.#sessions.has(session)) return
    this.#sessions.add(session)
    session.once('close', () => this.#sessions.delete(session))
    session.setLocalWindowSize(WINDOW_BYTES)
    // Its streams report their own errors; an 'error' event without a listener would end the process.
    session.on('error', () => {})
  }
}

const closed = () => new ConnectError('the connection is closed', Code.Canceled)

function withHeaders({ token, headers }: Remote): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value)
    if (token !== undefined) request.header.set(constants.HTTP2_HEADER_AUTHORIZATION, `Bearer ${token}`)
    return next(request)
  }
}
