import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import { failureWithout } from '../../models/check-reply.ts'
import { type Failure, failureOf, isPassing, parsedObject } from '../../models/failures.ts'
import { type BytesReply, postForBytes } from '../../models/http.ts'
import { ownPackage } from '../../own-package.ts'
import { redactorOf } from '../../redaction/config.ts'
import { failedCall, lateResult, nonsense, TinkerRefusal } from './call-errors.ts'
import type { TinkerSettings } from './settings.ts'

/** Of the Python SDK whose calls these are. The service decides by it what it allows. */
export const SDK_VERSION = '0.36.0'

/** One try of a call. */
const TRY_MS = 60_000
/** The service answers after about 30 s that there is no result yet. */
const POLL_MS = 45_000
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1000
const FIRST_BACKOFF_MS = 250
const LONGEST_BACKOFF_MS = 30_000
/** A token is exchanged for a new one so long before it ends. */
const TOKEN_MARGIN_MS = 60_000
/** Of a token that does not say how long it lasts. */
const TOKEN_MS = 300_000

const PROTOBUF = 'application/x-protobuf'

export interface TinkerCall {
  /** Behind `/api/v1/`. */
  readonly path: string
  /** Bytes are Protobuf. */
  readonly body: object | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** The result of a call: JSON, or what only Protobuf has a form for. */
export type TinkerResult =
  | { readonly json: Readonly<Record<string, unknown>>; readonly bytes?: never }
  | { readonly bytes: Uint8Array; readonly json?: never }

/** Calls of Tinker's HTTP interface. What passes is tried again; nothing takes longer than the settings say. */
export class TinkerCalls {
  readonly #settings: TinkerSettings
  readonly #key: string
  readonly #closed = new AbortController()
  #token: { readonly text: string; readonly until: number } | undefined
  /** The service wants short-lived tokens instead of the key. */
  exchangesKey = false

  constructor(settings: TinkerSettings) {
    const key = process.env[settings.apiKeyEnv]?.trim()
    if (!key)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `Tinker needs a key, and the variable ${settings.apiKeyEnv} is not set; \`apiKeyEnv\` names another`,
      )
    this.#settings = settings
    this.#key = key
  }

  /** When an operation that begins now is given up. */
  deadline(): number {
    return performance.now() + this.#settings.timeoutMs
  }

  /** Posts until there is an answer, always with the same idempotency key: what was done already is not done twice. */
  async post(call: TinkerCall, deadline = this.deadline()): Promise<Readonly<Record<string, unknown>>> {
    const headers = { ...call.headers, 'x-idempotency-key': `manyworlds-${randomUUID()}` }
    const attempts = this.#attempts(call.path, deadline)
    for (;;) {
      const { reply, failure } = await this.#send({ ...call, headers }, TRY_MS, deadline)
      if (failure) await attempts.pause(failure)
      else if (reply.status >= 200 && reply.status < 300) return this.#jsonIn(reply, call.path)
      else await attempts.pause(failureIn(reply))
    }
  }

  /** The result of an operation that was accepted. */
  async result(
    operation: string,
    requestId: string,
    wants: 'json' | 'protobuf',
    deadline: number,
  ): Promise<TinkerResult> {
    const attempts = this.#attempts(operation, deadline)
    const headers = { 'x-tinker-request-type': operation, ...(wants === 'protobuf' && { accept: PROTOBUF }) }
    const call = { path: 'retrieve_future', body: { request_id: requestId, allow_metadata_only: false }, headers }
    let queue = ''
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      if (performance.now() >= deadline) throw this.#clean(lateResult(this.#settings, operation, queue))
      const { reply, failure } = await this.#send(call, POLL_MS, deadline)
      if (failure) {
        if (performance.now() >= deadline) throw this.#clean(lateResult(this.#settings, operation, queue))
        await attempts.pause(failure)
        continue
      }
      const result = this.#resultIn(reply, operation)
      if (result && 'pending' in result) {
        attempts.renew()
        if (result.pending !== '') queue = result.pending
        await this.#sleep(Math.min(pauseMs, deadline - performance.now()))
      } else if (result) return result
      else await attempts.pause(failureIn(reply))
    }
  }

  /** Calls under way fail. */
  close(): void {
    this.#closed.abort(new ManyworldsError('LEARNER_FAILED', 'the learner was closed while Tinker was at work'))
  }

  get signal(): AbortSignal {
    return this.#closed.signal
  }

  /** Undefined: a failure. */
  #resultIn(reply: BytesReply, operation: string): TinkerResult | { pending: string } | undefined {
    const { status, headers, body } = reply
    if (status === 200 && headers['content-type']?.includes(PROTOBUF)) return { bytes: body }
    if (status !== 200 && status !== 408) return undefined
    // A proxy may say 408 as well, in words of its own.
    const json = status === 408 ? (parsedObject(body.toString('utf8')) ?? {}) : this.#jsonIn(reply, operation)
    if (status === 408 || json.type === 'try_again' || json.status === 'complete_metadata')
      return {
        pending: [json.queue_state, json.queue_state_reason].filter((word) => typeof word === 'string').join(': '),
      }
    if (typeof json.error !== 'string') return { json }
    const whose = json.category === 'user' ? 'refused' : 'failed at'
    throw this.#clean(new TinkerRefusal('LEARNER_FAILED', `Tinker ${whose} ${operation}: ${json.error.slice(0, 1000)}`))
  }

  async #send(
    { path, body, headers = {} }: TinkerCall,
    timeoutMs: number,
    deadline: number,
  ): Promise<{ reply: BytesReply; failure?: never } | { failure: Failure; reply?: never }> {
    const isBytes = body instanceof Uint8Array
    const all = {
      'x-api-key': await this.#credential(path, deadline),
      'user-agent': `manyworlds/${ownPackage.version}`,
      ...{ accept: 'application/json', 'content-type': isBytes ? PROTOBUF : 'application/json', ...headers },
    }
    try {
      const reply = await postForBytes({
        url: `${this.#settings.baseURL}/api/v1/${path}`,
        headers: all,
        body: isBytes ? body : JSON.stringify(body),
        timeoutMs: Math.max(1, Math.ceil(Math.min(timeoutMs, deadline - performance.now()))),
        signal: this.signal,
      })
      return { reply }
    } catch (error) {
      const failure = failureWithout(error)
      if (failure === undefined) throw error
      return { failure }
    }
  }

  async #credential(path: string, deadline: number): Promise<string> {
    if (!this.exchangesKey || path === 'auth/token' || path === 'client/config') return this.#key
    if (this.#token === undefined || this.#token.until - TOKEN_MARGIN_MS < Date.now()) {
      const { jwt } = await this.post({ path: 'auth/token', body: {} }, deadline)
      if (typeof jwt !== 'string' || jwt === '') throw nonsense('auth/token', 'no token')
      this.#token = { text: jwt, until: endOf(jwt) }
    }
    return this.#token.text
  }

  #jsonIn({ body }: BytesReply, what: string): Readonly<Record<string, unknown>> {
    const json = parsedObject(body.toString('utf8'))
    if (json === undefined) throw nonsense(what, `${body.length} bytes that are no JSON object`)
    return json
  }

  #attempts(what: string, deadline: number) {
    const { retryMs } = this.#settings
    let [since, count]: [number | undefined, number] = [undefined, 0]
    return {
      /** There was an answer. */
      renew: () => void ([since, count] = [undefined, 0]),
      /** Waits before the next try; throws if there is to be none. */
      pause: async (failure: Failure) => {
        const now = performance.now()
        since ??= now
        const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** count++) * (0.5 + Math.random() / 2)
        const ms = Math.max(backoff, failure.retryAfterMs ?? 0)
        const isOver = now + ms > Math.min(since + retryMs, deadline)
        if (!isPassing(failure) || isOver)
          throw this.#clean(failedCall(this.#settings, what, failure, { count, ms: now - since }))
        await this.#sleep(ms)
      },
    }
  }

  /** Whatever a server says: no key gets into a message. */
  #clean<T extends ManyworldsError>(error: T): T {
    const secrets = [this.#key, ...(this.#token ? [this.#token.text] : [])]
    error.message = redactorOf([], secrets)?.text(error.message) ?? error.message
    return error
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), undefined, { signal: this.signal }).catch(() => {
      throw this.signal.reason
    })
  }
}

/** A proxy before the service sometimes answers 400 without a word: that passes. */
const failureIn = (reply: BytesReply): Failure =>
  reply.status === 400 && reply.body.length === 0
    ? { kind: 'transient', message: 'an empty reply', status: 400 }
    : failureOf({ ...reply, body: reply.body.toString('utf8') })

/** When a JSON Web Token ends, by its own word. */
function endOf(jwt: string): number {
  const { exp } = parsedObject(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}
  return typeof exp === 'number' ? exp * 1000 : Date.now() + TOKEN_MS
}
