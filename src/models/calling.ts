import { ManyworldsError } from '../errors.ts'
import { duration } from '../text/quantities.ts'
import { checkReply, failureWithout } from './check-reply.ts'
import type { Permit, PermitOutcome, PermitRequest } from './driver/limiter.ts'
import { CODES, type Failure, isRetryable } from './failures.ts'
import type { HttpReply } from './http.ts'

/** The permit for the next attempt of a call, and how long to wait for it. */
export type PermitWanted = Pick<PermitRequest, 'notBefore' | 'first'> & { readonly waitMs: number }

/** The parts of a call, in the driver or in a worker. */
export interface Calling<Answer> {
  /** For errors: the model, "model 'small'", and its address, "qwen3 at http://…". */
  readonly what: string
  readonly where: string
  /** The environment variable with the key, for the hint. */
  readonly apiKeyEnv: string | undefined
  readonly permitMs: number
  readonly maxRetries: number
  permit(wanted: PermitWanted): Promise<Permit>
  /** One attempt. Rejects only if the call was cancelled. */
  attempt(): Promise<Attempt<Answer>>
}

export type Attempt<Answer> =
  | { readonly failure: Failure; readonly answer?: never }
  | {
      readonly failure?: never
      readonly answer: Answer
      readonly tokens: number | undefined
      /** How often this attempt was repeated on another connection. */
      readonly again?: number
    }

export interface Called<Answer> {
  readonly answer: Answer
  /** The number of retries. */
  readonly retries: number
  /** The total time spent waiting for permits. */
  readonly waitedMs: number
  /** The duration of the successful attempt. */
  readonly ms: number
}

const BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000
/** A server may ask for hours when a daily quota is used up. Trying earlier costs only one call. */
export const LONGEST_PAUSE_MS = 300_000
/** Rate-limited calls normally end by `permitMs`; this limits servers whose refusals cause no waiting. */
const MAX_LIMITED = 1000

/** Calls a model until it answers: the only place that retries. */
export async function callModel<Answer>(calling: Calling<Answer>): Promise<Called<Answer>> {
  const { permitMs, maxRetries } = calling
  let waitedMs = 0
  let limited = 0
  let failed = 0
  let last: Failure | undefined
  let wanted: Omit<PermitWanted, 'waitMs'> = {}
  for (;;) {
    const asked = performance.now()
    const waitMs = Math.max(1, Math.round(permitMs - waitedMs))
    const permit = await calling.permit({ ...wanted, waitMs }).catch((error: unknown) => {
      // Why the previous attempt failed is more helpful than the permit timeout.
      throw last && isTooLate(error) ? callError(calling, last, limited + failed, true) : error
    })
    const began = performance.now()
    waitedMs += began - asked
    const tried = await tryOnce(calling, permit)
    const { failure } = tried
    if (failure === undefined) {
      const { answer, again = 0 } = tried
      return { answer, retries: limited + failed + again, waitedMs, ms: performance.now() - began }
    }
    last = failure
    const tries = limited + failed + 1
    if (!isRetryable(failure)) throw callError(calling, failure, tries)
    if (failure.kind === 'rate_limit') {
      if (++limited > MAX_LIMITED || waitedMs >= permitMs) throw callError(calling, failure, tries, true)
      wanted = { first: true }
    } else {
      if (++failed > maxRetries) throw callError(calling, failure, tries)
      const backoff = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (failed - 1)) * (0.5 + Math.random() / 2)
      const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
      wanted = { first: true, notBefore: performance.now() + Math.max(backoff, asked) }
    }
  }
}

const isTooLate = (error: unknown) => ManyworldsError.is(error) && error.code === 'MODEL_PERMIT_TIMEOUT'

/** The permit is settled in any case. */
async function tryOnce<Answer>({ attempt }: Calling<Answer>, permit: Permit): Promise<Attempt<Answer>> {
  let outcome: PermitOutcome = { kind: 'failed' }
  try {
    const tried = await attempt()
    const { failure } = tried
    if (failure === undefined) outcome = { kind: 'ok', ...(tried.tokens !== undefined && { tokens: tried.tokens }) }
    else {
      const kind = failure.kind === 'rate_limit' ? 'rate_limit' : 'failed'
      outcome = { kind, ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }) }
    }
    return tried
  } finally {
    permit.settle(outcome)
  }
}

/** One attempt over HTTP. */
export async function attemptOf(send: () => Promise<HttpReply>): Promise<Attempt<HttpReply>> {
  let reply: HttpReply
  try {
    reply = await send()
  } catch (error) {
    const failure = failureWithout(error)
    if (failure === undefined) throw error
    return { failure }
  }
  const { completion, failure } = checkReply(reply)
  if (failure) return { failure }
  const total = completion.usage?.total_tokens
  const { again = 0 } = reply
  // Servers may report anything.
  const known = typeof total === 'number' && total >= 0 && Number.isFinite(total)
  return { answer: reply, tokens: known ? total : undefined, again }
}

/** `late`: there was no time for another attempt. */
function callError(
  { what, where, apiKeyEnv, permitMs }: Pick<Calling<unknown>, 'what' | 'where' | 'apiKeyEnv' | 'permitMs'>,
  { kind, message, status, retryAfterMs = 0 }: Failure,
  tries: number,
  late = false,
): ManyworldsError {
  const often = tries > 1 ? ` (${tries} attempts)` : ''
  const problem = status === undefined ? message : `the server answered HTTP ${status}: ${message}`
  const pause = retryAfterMs >= 1000 ? `; it asked for a pause of ${duration(retryAfterMs)}` : ''
  const why = late
    ? `${pause}; no further attempt was possible within ${duration(permitMs)} (\`permitTimeoutMs\`)`
    : hint()
  return new ManyworldsError(CODES[kind], `${what}: ${problem}${often}${why} (${where})`)

  function hint(): string {
    switch (kind) {
      case 'authentication':
        if (status === undefined) return '; correct `baseURL`, or trust its certificate with NODE_EXTRA_CA_CERTS'
        return apiKeyEnv === undefined
          ? '; the call had no API key: name its environment variable in `apiKeyEnv`'
          : `; check the API key in ${apiKeyEnv}`
      case 'timeout':
        return '; increase `timeoutMs` of the model'
      case 'too_large':
        return '; lower `maxTokens`, or request fewer log-probabilities'
      case 'invalid_request':
        return status === 404 || status === 405 ? notFound(message) : ''
      default:
        return pause
    }
  }
}

/** Either the model or the address is unknown. */
const notFound = (message: string) =>
  /model/i.test(message)
    ? '; most servers list their models at `baseURL` + /models'
    : '; check `baseURL`: with most servers it ends with /v1'
