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
/** A server that wants us to wait for longer has most likely said something else. */
const MOST_RETRY_AFTER_MS = 3_600_000

const TOO_LONG =
  /context.{0,20}(length|window|size)|maximum.{0,20}(tokens|length)|too many (input )?tokens|(prompt|input|request).{0,20}(is )?too (long|large)|string_above_max_length/i
const FILTERED = /content.?(filter|policy|management)|responsible.?ai|safety.?(filter|system)/i
const NO_QUOTA = /insufficient.?quota|billing|credit balance|payment required/i

/** What a reply that is no answer means. */
export function failureOf({ status, headers, body }: HttpReply, now = Date.now()): Failure {
  const said = errorIn(body)
  const message = said.message || `status ${status}`
  const retryAfterMs = retryAfter(headers, now)
  return { kind: kindOf(status, said), message, status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function kindOf(status: number, { code, type, message }: SaidError): FailureKind {
  const words = `${code} ${type} ${message}`
  if (status === 429) return NO_QUOTA.test(words) ? 'authentication' : 'rate_limit'
  if (status === 401 || status === 402 || status === 403)
    return FILTERED.test(`${code} ${type}`) ? 'content_filter' : 'authentication'
  if (status === 413) return 'context_length'
  if (status === 408 || status === 409 || status === 425 || status >= 500) return 'transient'
  if (TOO_LONG.test(words)) return 'context_length'
  return FILTERED.test(words) ? 'content_filter' : 'invalid_request'
}

export interface SaidError {
  readonly code: string
  readonly type: string
  readonly message: string
}

/** The error in a body, as most servers write it: `{ error: { message, type, code } }`. Else the beginning of its text. */
export function errorIn(body: string): SaidError {
  const parsed = parsedObject(body)
  const inner = parsed?.error ?? parsed
  if (typeof inner === 'string') return { code: '', type: '', message: shortened(inner) }
  const { code, type, message, detail } = (inner ?? {}) as Record<string, unknown>
  const text = typeof message === 'string' ? message : detail === undefined ? undefined : JSON.stringify(detail)
  return { code: wordOf(code), type: wordOf(type), message: shortened(text ?? withoutTags(body)) }
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
