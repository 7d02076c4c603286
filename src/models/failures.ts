import type { ErrorCode } from '../errors.ts'
import { oneLine } from '../text/visible.ts'
import type { HttpReply } from './http.ts'

/** Why a call of a model came to nothing. The first three are tried again. */
export type FailureKind =
  | 'rate_limit'
  | 'transient'
  | 'timeout'
  | 'invalid_request'
  | 'authentication'
  | 'content_filter'
  | 'context_length'

export interface Failure {
  readonly kind: FailureKind
  /** What the server said, or what happened. */
  readonly message: string
  readonly status?: number
  /** The server wants nobody to call it again before that. */
  readonly retryAfterMs?: number
}

const PASSING: readonly FailureKind[] = ['rate_limit', 'transient', 'timeout']

export const isPassing = ({ kind }: Failure): boolean => PASSING.includes(kind)

export const CODES: Readonly<Record<FailureKind, ErrorCode>> = {
  rate_limit: 'MODEL_RATE_LIMIT',
  transient: 'MODEL_TRANSIENT',
  timeout: 'MODEL_TIMEOUT',
  invalid_request: 'MODEL_INVALID_REQUEST',
  authentication: 'MODEL_AUTHENTICATION',
  content_filter: 'MODEL_CONTENT_FILTER',
  context_length: 'MODEL_CONTEXT_LENGTH',
}

const MOST_CHARS = 500
/** Where in an error page its cause stands is anybody's guess; no more than this is searched. */
const MOST_SEARCHED = 4000
/** Nobody writes so much about an error. */
const MOST_PARSED = 1024 * 1024
/** A server that wants us to wait for longer has most likely said something else. */
const MOST_RETRY_AFTER_MS = 3_600_000

const TOO_LONG =
  /context.{0,20}(length|window|size|limit)|maximum.{0,20}(tokens|length)|too many (input )?tokens|(prompt|input|request).{0,20}(is )?too (long|large)|tokens \+ `?max_new_tokens|string_above_max_length/i
/** One call wants more tokens than the server allows in a minute: it will never pass. */
const NEVER_PASSES = /request too large/i
/** llama.cpp says it with status 500. */
const GREW_TOO_LONG = /context size has been exceeded/i
const FILTERED = /content.?(filter|policy|management)|responsible.?ai|safety.?(filter|system)/i
/** Not what texts about rate limits say as well: they often name a page about billing. */
const NO_QUOTA = /insufficient.?(quota|balance|credits|funds)|credit balance|billing.?hard.?limit|payment required/i

/** What a reply that is no answer means. */
export function failureOf({ status, headers, body }: HttpReply, now = Date.now()): Failure {
  const said = errorIn(body)
  const message = isRedirect(status) ? redirected(headers) : said.message || `status ${status}`
  const retryAfterMs = retryAfter(headers, now) ?? said.retryAfterMs
  return { kind: kindOf(status, said), message, status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

const isRedirect = (status: number) => status >= 300 && status < 400

const redirected = ({ location }: HttpReply['headers']) =>
  `a redirect${location ? ` to ${shortened(location)}` : ''}, which is not followed: correct \`baseURL\``

function kindOf(status: number, { code, type, message }: SaidError): FailureKind {
  const words = `${code} ${type} ${message}`
  if (status === 429) {
    if (NO_QUOTA.test(words)) return 'authentication'
    return NEVER_PASSES.test(message) ? 'context_length' : 'rate_limit'
  }
  if (status === 401 || status === 402 || status === 403)
    return FILTERED.test(`${code} ${type}`) ? 'content_filter' : 'authentication'
  if (status === 413) return 'context_length'
  if (status >= 500 && GREW_TOO_LONG.test(message)) return 'context_length'
  // 498: Groq has no room for now.
  if (PASSING_STATUSES.includes(status) || status >= 500) return 'transient'
  if (TOO_LONG.test(words)) return 'context_length'
  return FILTERED.test(words) ? 'content_filter' : 'invalid_request'
}

const PASSING_STATUSES: readonly number[] = [408, 409, 425, 498]

export interface SaidError {
  readonly code: string
  readonly type: string
  readonly message: string
  readonly retryAfterMs?: number
}

/** The error in a body, as most servers write it: `{ error: { message, type, code } }`. Else the beginning of its text. */
export function errorIn(body: string): SaidError {
  const parsed = body.length > MOST_PARSED ? undefined : parsedObject(body)
  // Gemini sends a list with one error.
  const first = Array.isArray(parsed) ? asObject(parsed[0]) : parsed
  const inner = first?.error ?? first
  if (typeof inner === 'string') return { code: '', type: '', message: shortened(inner) }
  const { code, type, message, detail, details, metadata } = asObject(inner) ?? {}
  const text = typeof message === 'string' ? message : detail === undefined ? undefined : JSON.stringify(detail)
  // OpenRouter: what the server behind it said.
  const { raw } = asObject(metadata) ?? {}
  const behind = typeof raw === 'string' && raw !== '' ? `: ${raw.slice(0, MOST_SEARCHED)}` : ''
  const retryAfterMs = delayIn(details)
  return {
    ...{ code: wordOf(code), type: wordOf(type) },
    message: shortened(text === undefined ? withoutTags(body) : text + behind),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

const asObject = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined

const MOST_DETAILS = 20

/** Gemini: `details: [{ retryDelay: '28s' }]`. */
function delayIn(details: unknown): number | undefined {
  const delays = Array.isArray(details) ? details.slice(0, MOST_DETAILS).map((one) => asObject(one)?.retryDelay) : []
  const delay = delays.find((one) => typeof one === 'string')
  const [, seconds] = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(String(delay)) ?? []
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1000, MOST_RETRY_AFTER_MS)
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
  const line = oneLine(text.slice(0, MOST_SEARCHED).trim())
  return line.length > MOST_CHARS ? `${line.slice(0, MOST_CHARS)} …` : line
}

/** Of an error page, the words. */
const withoutTags = (text: string) => text.slice(0, MOST_SEARCHED).replaceAll(/<[^<>]{0,500}>/g, ' ')

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfter(headers: HttpReply['headers'], now: number): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (exact >= 0) return Math.min(exact, MOST_RETRY_AFTER_MS)
  const given = headers['retry-after']
  if (given === undefined || given === '') return undefined
  const seconds = Number(given)
  const ms = Number.isNaN(seconds) ? Date.parse(given) - now : seconds * 1000
  return ms >= 0 ? Math.min(ms, MOST_RETRY_AFTER_MS) : undefined
}
