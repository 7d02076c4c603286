import type { ErrorCode } from '../errors.ts'
import { oneLine } from '../text/escape-controls.ts'
import type { HttpReply } from './http.ts'

/** Why a model call failed. The first three are retried. */
export type FailureKind =
  | 'rate_limit'
  | 'transient'
  | 'timeout'
  | 'invalid_request'
  | 'authentication'
  | 'content_filter'
  | 'context_length'
  | 'too_large'

export interface Failure {
  readonly kind: FailureKind
  /** The server's message, or what happened. */
  readonly message: string
  readonly status?: number
  /** How long the server asks to wait before the next call. */
  readonly retryAfterMs?: number
  /** No connection to the server was possible. */
  readonly unreachable?: true
}

/** Error codes of connections that were not possible: nobody listens there, or there is no such host. */
const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|UND_ERR_CONNECT_TIMEOUT)$/

export const isUnreachable = (code: unknown): boolean => typeof code === 'string' && UNREACHABLE.test(code)

/**
 * Whether every call of the model would fail like this one: the server refuses the key, has no such model or address, or
 * is not there.
 */
export function sharedKind({ kind, status, unreachable }: Failure): 'refused' | 'unreachable' | undefined {
  if (unreachable) return 'unreachable'
  return kind === 'authentication' || isNotFound(status) ? 'refused' : undefined
}

export const isNotFound = (status: number | undefined): boolean => status === 404 || status === 405

const RETRYABLE: readonly FailureKind[] = ['rate_limit', 'transient', 'timeout']

export const isRetryable = ({ kind }: Failure): boolean => RETRYABLE.includes(kind)

export const CODES: Readonly<Record<FailureKind, ErrorCode>> = {
  rate_limit: 'MODEL_RATE_LIMIT',
  transient: 'MODEL_TRANSIENT',
  timeout: 'MODEL_TIMEOUT',
  invalid_request: 'MODEL_INVALID_REQUEST',
  authentication: 'MODEL_AUTHENTICATION',
  content_filter: 'MODEL_CONTENT_FILTER',
  context_length: 'MODEL_CONTEXT_LENGTH',
  too_large: 'MODEL_OUTPUT_INVALID',
}

const MAX_CHARS = 500
/** The cause may be anywhere in an error page; only this many characters are searched. */
const MAX_SEARCHED = 4000
/** Longer error bodies are not parsed. */
const MAX_PARSED = 1024 * 1024
/** A longer wait is most likely a misunderstanding. */
const MAX_RETRY_AFTER_MS = 3_600_000

const TOO_LONG =
  /context.{0,20}(length|window|size|limit)|maximum.{0,20}(tokens|length)|too many (input )?tokens|(prompt|input|request).{0,20}(is )?too (long|large)|tokens \+ `?max_new_tokens|string_above_max_length/i
/** One call needs more tokens than the server allows per minute: it will never succeed. */
const NEVER_PASSES = /request too large/i
/** llama.cpp reports this with status 500. */
const GREW_TOO_LONG = /context size has been exceeded/i
const FILTERED = /content.?(filter|policy|management)|responsible.?ai|safety.?(filter|system)/i
/** Must not match texts about rate limits, which often link to a billing page. */
const NO_QUOTA = /insufficient.?(quota|balance|credits|funds)|credit balance|billing.?hard.?limit|payment required/i

/** The meaning of a reply that is not an answer. */
export function failureOf({ status, headers, body }: HttpReply, now = Date.now()): Failure {
  const found = errorIn(body)
  const message = isRedirect(status) ? redirected(headers) : found.message || `status ${status}`
  const retryAfterMs = retryAfter(headers, now) ?? found.retryAfterMs
  return { kind: kindOf(status, found), message, status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

const isRedirect = (status: number) => status >= 300 && status < 400

const redirected = ({ location }: HttpReply['headers']) =>
  `a redirect${location ? ` to ${shortened(location)}` : ''}, which is not followed; correct \`baseURL\``

function kindOf(status: number, { code, type, message }: ServerError): FailureKind {
  const words = `${code} ${type} ${message}`
  if (status === 429) {
    if (NO_QUOTA.test(words)) return 'authentication'
    return NEVER_PASSES.test(message) ? 'context_length' : 'rate_limit'
  }
  if (status === 401 || status === 402 || status === 403)
    return FILTERED.test(`${code} ${type}`) ? 'content_filter' : 'authentication'
  if (status === 413) return 'context_length'
  if (status >= 500 && GREW_TOO_LONG.test(message)) return 'context_length'
  // 498: Groq has no capacity at the moment.
  if (RETRYABLE_STATUSES.includes(status) || status >= 500) return 'transient'
  if (TOO_LONG.test(words)) return 'context_length'
  return FILTERED.test(words) ? 'content_filter' : 'invalid_request'
}

const RETRYABLE_STATUSES: readonly number[] = [408, 409, 425, 498]

export interface ServerError {
  readonly code: string
  readonly type: string
  readonly message: string
  readonly retryAfterMs?: number
}

/** The error in a body in the common format, `{ error: { message, type, code } }`; otherwise the start of its text. */
export function errorIn(body: string): ServerError {
  const parsed = body.length > MAX_PARSED ? undefined : parsedObject(body)
  // Gemini sends a list with one error.
  const first = Array.isArray(parsed) ? asObject(parsed[0]) : parsed
  const inner = first?.error ?? first
  if (typeof inner === 'string') return { code: '', type: '', message: shortened(inner) }
  const { code, type, message, detail, details, metadata } = asObject(inner) ?? {}
  const text = typeof message === 'string' ? message : detail === undefined ? undefined : JSON.stringify(detail)
  // OpenRouter: the message of the upstream server.
  const { raw } = asObject(metadata) ?? {}
  const behind = typeof raw === 'string' && raw !== '' ? `: ${raw.slice(0, MAX_SEARCHED)}` : ''
  const retryAfterMs = delayIn(details)
  return {
    ...{ code: wordOf(code), type: wordOf(type) },
    message: shortened(text === undefined ? withoutTags(body) : text + behind),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

const asObject = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined

const MAX_DETAILS = 20

/** Gemini: `details: [{ retryDelay: '28s' }]`. */
function delayIn(details: unknown): number | undefined {
  const delays = Array.isArray(details) ? details.slice(0, MAX_DETAILS).map((one) => asObject(one)?.retryDelay) : []
  const delay = delays.find((one) => typeof one === 'string')
  const [, seconds] = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(String(delay)) ?? []
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1000, MAX_RETRY_AFTER_MS)
}

export function parsedObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const wordOf = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, 100) : ''

function shortened(text: string): string {
  const line = oneLine(text.slice(0, MAX_SEARCHED).trim())
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)} …` : line
}

/** The text of an error page. */
const withoutTags = (text: string) => text.slice(0, MAX_SEARCHED).replaceAll(/<[^<>]{0,500}>/g, ' ')

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfter(headers: HttpReply['headers'], now: number): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (exact >= 0) return Math.min(exact, MAX_RETRY_AFTER_MS)
  const given = headers['retry-after']
  if (given === undefined || given === '') return undefined
  const seconds = Number(given)
  const ms = Number.isNaN(seconds) ? Date.parse(given) - now : seconds * 1000
  return ms >= 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined
}
