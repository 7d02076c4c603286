import { type Failure, failureOf } from '../failures.ts'

/** Failures of connections: another try may get through. */
const PASSING = /^(ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR_)/
const MOST_CHARS = 500

/** What an object of a provider throws: an `APICallError`, with the status and body of the reply, if there was one. */
export function failureIn(error: unknown): Failure {
  const thrown = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const { statusCode, responseHeaders, responseBody, isRetryable, name, message, code, cause } = thrown
  const words = (typeof message === 'string' ? message : shown(error)).slice(0, MOST_CHARS)
  if (typeof statusCode === 'number') {
    const body = typeof responseBody === 'string' && responseBody !== '' ? responseBody : words
    return failureOf({ status: statusCode, headers: lowerCase(responseHeaders), body })
  }
  if (name === 'TimeoutError') return { kind: 'timeout', message: words }
  const codes = [code, (cause as { code?: unknown } | undefined)?.code]
  const isPassing = isRetryable === true || codes.some((one) => typeof one === 'string' && PASSING.test(one))
  return { kind: isPassing ? 'transient' : 'invalid_request', message: words }
}

function shown(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'it threw something that has no text'
  }
}

function lowerCase(headers: unknown): Record<string, string> {
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name.toLowerCase(), value]] : [])),
  )
}
