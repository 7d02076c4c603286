import { type Completion, listOf } from './completion.ts'
import { errorIn, type Failure, failureOf, isUnreachable } from './failures.ts'
import { HttpFailure, type HttpReply, ReplyTooLarge } from './http.ts'
import { completionIn } from './read-completion.ts'

export type CheckedReply =
  | { readonly failure: Failure; readonly completion?: never }
  | { readonly failure?: never; readonly completion: Completion }

/** Whether a reply is a complete answer: some servers send a truncated one, or an error with status 200. */
export function checkReply(reply: HttpReply): CheckedReply {
  const { status, body } = reply
  if (status < 200 || status >= 300) return { failure: failureOf(reply) }
  const completion = completionIn(body)
  if (completion === undefined)
    return { failure: { kind: 'transient', message: `an incomplete or invalid reply: ${start(body)}` } }
  const { choices, error } = completion
  if (error !== undefined && error !== null) return { failure: failureInside(reply, error) }
  const [first] = listOf(choices)
  if (first?.error !== undefined && first.error !== null) return { failure: failureInside(reply, first.error) }
  if (first === undefined) return { failure: { kind: 'transient', message: `a reply without choices: ${start(body)}` } }
  return { completion }
}

/** An error with status 200. Some contain the status they mean. */
function failureInside(reply: HttpReply, error: unknown): Failure {
  const { code } = (typeof error === 'object' ? error : {}) as { code?: unknown }
  const meant = Number(code)
  const status = Number.isInteger(meant) && meant >= 400 && meant < 600 ? meant : 500
  return failureOf({ ...reply, status, body: JSON.stringify({ error }) })
}

/** The failure of a call without a reply; undefined if the error is of another kind. */
export function failureWithout(error: unknown): Failure | undefined {
  if (!(error instanceof HttpFailure)) return undefined
  const { message, timedOut, cause } = error
  if (error instanceof ReplyTooLarge) return { kind: 'too_large', message }
  const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException
  if (CERTIFICATE.test(code)) return { kind: 'authentication', message }
  if (code === 'EPROTO' && NO_TLS.test(message))
    return { kind: 'authentication', message: 'the server does not use TLS' }
  if (timedOut) return { kind: 'timeout', message }
  return { kind: 'transient', message, ...(isUnreachable(code) && { unreachable: true }) }
}

/** Node's error codes for untrusted certificates. Retrying does not help. */
const CERTIFICATE = /^ERR_TLS_CERT|_CERT$|^CERT_|_CERT_|^UNABLE_TO_VERIFY/
const NO_TLS = /wrong version number/

const start = (body: string) => (body.trim() === '' ? 'it is empty' : errorIn(body.slice(0, 200)).message)
