import { checkReply } from '../check-reply.ts'
import { type Failure, failureOf, isUnreachable } from '../failures.ts'

/** Connection errors, which are worth a retry. */
const TRANSIENT = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|EHOSTDOWN|UND_ERR_)/
const MAX_CHARS = 500

/**
 * Converts an error of a provider object: an `APICallError`, with the status and body of the reply if there was one.
 */
export function failureIn(error: unknown): Failure {
  const thrown = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const { statusCode, responseHeaders, responseBody, isRetryable, name, message, code, cause } = thrown
  const words = (typeof message === 'string' ? message : shown(error)).slice(0, MAX_CHARS)
  if (typeof statusCode === 'number') {
    const body = typeof responseBody === 'string' && responseBody !== '' ? responseBody : words
    const reply = { status: statusCode, headers: lowerCase(responseHeaders), body }
    // The provider could not read an answer with status 200: it was truncated, or is an error.
    const isAnswer = statusCode >= 200 && statusCode < 300
    return isAnswer ? (checkReply(reply).failure ?? { kind: 'transient', message: words }) : failureOf(reply)
  }
  if (name === 'TimeoutError') return { kind: 'timeout', message: words }
  const codes = [code, ...causesOf(cause)]
  const isTransient = isRetryable === true || codes.some((one) => typeof one === 'string' && TRANSIENT.test(one))
  if (!isTransient) return { kind: 'invalid_request', message: words }
  return { kind: 'transient', message: words, ...(codes.some(isUnreachable) && { unreachable: true }) }
}

/** The codes of causes: the SDK wraps the error of `fetch`, which wraps that of the socket. */
function causesOf(cause: unknown, depth = 0): unknown[] {
  if (typeof cause !== 'object' || cause === null || depth > 4) return []
  const { code, cause: inner } = cause as { code?: unknown; cause?: unknown }
  return [code, ...causesOf(inner, depth + 1)]
}

function shown(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'it threw a value that cannot be converted to a string'
  }
}

function lowerCase(headers: unknown): Record<string, string> {
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name.toLowerCase(), value]] : [])),
  )
}
