import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import { failureWithout } from '../../models/check-reply.ts'
import { type Failure, failureOf, isRetryable, parsedObject } from '../../models/failures.ts'
import { type BytesReply, postForBytes } from '../../models/http.ts'
import { ownPackage } from '../../own-package.ts'
import { redactorOf } from '../../redaction/config.ts'
import { failedCall, lateResult, TinkerRefusal, unexpectedAnswer } from './call-errors.ts'
import type { TinkerSettings } from './settings.ts'

/** The version of the Python SDK whose calls these are. The service uses it to decide what it allows. */
export const SDK_VERSION = '0.36.0'

/** The timeout of one attempt. */
const TRY_MS = 60_000
/** The service answers after about 30 s if there is no result yet. */
const POLL_MS = 45_000
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1000
const FIRST_BACKOFF_MS = 250
const LONGEST_BACKOFF_MS = 30_000
/** How long before its expiry a token is renewed. */
const TOKEN_MARGIN_MS = 60_000
/** The lifetime of a token without an expiry time. */
const TOKEN_MS = 300_000

/** Log-probabilities of a batch are larger than the answer of a chat. */
const MAX_REPLY_BYTES = 64 * 2 ** 20

const PROTOBUF = 'application/x-protobuf'

export interface TinkerCall {
  /** Relative to `/api/v1/`. */
  readonly path: string
  /** Bytes are sent as Protobuf. */
  readonly body: object | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** The result of a call, in JSON or Protobuf. */
export type TinkerResult =
  | { readonly json: Readonly<Record<string, unknown>>; readonly bytes?: never }
  | { readonly bytes: Uint8Array; readonly json?: never }

/** Calls Tinker's HTTP API. Transient failures are retried, within the time limits of the settings. */
export class TinkerCalls {
  readonly #settings: TinkerSettings
  readonly #key: string
  readonly #closed = new AbortController()
  #token: { readonly text: string; readonly until: number } | undefined
  /** Whether the service requires short-lived tokens instead of the key. */
  exchangesKey = false

  constructor(settings: TinkerSettings) {
    const key = process.env[settings.apiKeyEnv]?.trim()
    if (!key)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `the environment variable ${settings.apiKeyEnv} is not set; put your Tinker API key there, or name another variable with \`apiKeyEnv\``,
      )
    this.#settings = settings
    this.#key = key
  }

  /** The deadline of an operation that starts now. */
  deadline(): number {
    return performance.now() + this.#settings.timeoutMs
  }

  /** Posts until there is an answer, always with the same idempotency key, so that nothing is done twice. */
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

  /** Waits for the result of an accepted operation. */
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

  /** Aborts all pending calls. */
  close(): void {
    this.#closed.abort(new ManyworldsError('LEARNER_FAILED', 'the learner was closed during a call to Tinker'))
  }

  get signal(): AbortSignal {
    return this.#closed.signal
  }

  /** Undefined if the reply is a failure. */
  #resultIn(reply: BytesReply, operation: string): TinkerResult | { pending: string } | undefined {
    const { status, headers, body } = reply
    if (status === 200 && headers['content-type']?.includes(PROTOBUF)) return { bytes: body }
    if (status !== 200 && status !== 408) return undefined
    // A proxy may also answer 408, with another body.
    const json = status === 408 ? (parsedObject(body.toString('utf8')) ?? {}) : this.#jsonIn(reply, operation)
    if (status === 408 || json.type === 'try_again' || json.status === 'complete_metadata')
      return {
        pending: [json.queue_state, json.queue_state_reason].filter((word) => typeof word === 'string').join(': '),
      }
    if (typeof json.error !== 'string') return { json }
    const outcome = json.category === 'user' ? 'refused' : 'failed at'
    throw this.#clean(
      new TinkerRefusal('LEARNER_FAILED', `Tinker ${outcome} ${operation}: ${json.error.slice(0, 1000)}`),
    )
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
        maxBytes: MAX_REPLY_BYTES,
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
      if (typeof jwt !== 'string' || jwt === '') throw unexpectedAnswer('auth/token', 'no token')
      this.#token = { text: jwt, until: endOf(jwt) }
    }
    return this.#token.text
  }

  #jsonIn({ body }: BytesReply, what: string): Readonly<Record<string, unknown>> {
    const json = parsedObject(body.toString('utf8'))
    if (json === undefined) throw unexpectedAnswer(what, `${body.length} bytes that are not a JSON object`)
    return json
  }

  #attempts(what: string, deadline: number) {
    const { retryMs } = this.#settings
    let [since, count]: [number | undefined, number] = [undefined, 0]
    return {
      /** An answer arrived, so the retry time starts over. */
      renew: () => void ([since, count] = [undefined, 0]),
      /** Waits before the next attempt; throws if there should be none. */
      pause: async (failure: Failure) => {
        const now = performance.now()
        since ??= now
        const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** count++) * (0.5 + Math.random() / 2)
        const ms = Math.max(backoff, failure.retryAfterMs ?? 0)
        const isOver = now + ms > Math.min(since + retryMs, deadline)
        if (!isRetryable(failure) || isOver)
          throw this.#clean(failedCall(this.#settings, what, failure, { count, ms: now - since }))
        await this.#sleep(ms)
      },
    }
  }

  /** Removes secrets from a message, whatever the server wrote. */
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

/** A proxy sometimes answers an empty 400; that is transient. */
const failureIn = (reply: BytesReply): Failure =>
  reply.status === 400 && reply.body.length === 0
    ? { kind: 'transient', message: 'an empty reply', status: 400 }
    : failureOf({ ...reply, body: reply.body.toString('utf8') })

/** The expiry time in a JSON Web Token. */
function endOf(jwt: string): number {
  const { exp } = parsedObject(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}
  return typeof exp === 'number' ? exp * 1000 : Date.now() + TOKEN_MS
}
