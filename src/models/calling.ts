import { ManyworldsError } from '../errors.ts'
import { duration } from '../text/quantities.ts'
import { checkReply, failureWithout } from './check-reply.ts'
import type { Permit, PermitOutcome, PermitRequest } from './driver/limiter.ts'
import { CODES, type Failure, isPassing } from './failures.ts'
import type { HttpReply } from './http.ts'

/** How long it may wait, and what else is known of a call that is tried again. */
export type PermitWanted = Pick<PermitRequest, 'notBefore' | 'first'> & { readonly waitMs: number }

/** What a call is made of, in the driver or in a worker. */
export interface Calling<Answer> {
  /** For errors: "model 'small'", and at their end, where it is: "qwen3 at http://…". */
  readonly what: string
  readonly where: string
  /** Of what a wrong key would be in: for the hint. */
  readonly apiKeyEnv: string | undefined
  readonly permitMs: number
  readonly maxRetries: number
  permit(wanted: PermitWanted): Promise<Permit>
  /** One try. Rejects only if it was taken back. */
  attempt(): Promise<Attempt<Answer>>
}

export type Attempt<Answer> =
  | { readonly failure: Failure; readonly answer?: never }
  | {
      readonly failure?: never
      readonly answer: Answer
      readonly tokens: number | undefined
      /** How often this one try was made anew, on another connection. */
      readonly again?: number
    }

export interface Called<Answer> {
  readonly answer: Answer
  /** How often it was tried again. */
  readonly retries: number
  /** For its turns, in all. */
  readonly waitedMs: number
  /** The call that was answered. */
  readonly ms: number
}

const BACKOFF_MS = 500
const MOST_BACKOFF_MS = 30_000
/** A server may ask for hours, when a day's quota is spent. Trying again costs one call. */
export const LONGEST_PAUSE_MS = 300_000
/** A server that always says that it is called too often ends a call by `permitMs`; this is for one that we never wait for. */
const MOST_LIMITED = 1000

/** Calls a model until it answers: the one place that tries again. */
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
      // That there was no second try says less than why the first one failed.
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
    if (!isPassing(failure)) throw callError(calling, failure, tries)
    if (failure.kind === 'rate_limit') {
      if (++limited > MOST_LIMITED || waitedMs >= permitMs) throw callError(calling, failure, tries, true)
      wanted = { first: true }
    } else {
      if (++failed > maxRetries) throw callError(calling, failure, tries)
      const backoff = Math.min(MOST_BACKOFF_MS, BACKOFF_MS * 2 ** (failed - 1)) * (0.5 + Math.random() / 2)
      const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
      wanted = { first: true, notBefore: performance.now() + Math.max(backoff, asked) }
    }
  }
}

const isTooLate = (error: unknown) => ManyworldsError.is(error) && error.code === 'MODEL_PERMIT_TIMEOUT'

/** The permit is settled, whatever happens. */
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

/** A call over HTTP. */
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
  // What a server says may be anything.
  const known = typeof total === 'number' && total >= 0 && Number.isFinite(total)
  return { answer: reply, tokens: known ? total : undefined, again }
}

/** `late`: there was no time for another try. */
function callError(
  { what, where, apiKeyEnv, permitMs }: Pick<Calling<unknown>, 'what' | 'where' | 'apiKeyEnv' | 'permitMs'>,
  { kind, message, status, retryAfterMs = 0 }: Failure,
  tries: number,
  late = false,
): ManyworldsError {
  const often = tries > 1 ? ` (tried ${tries} times)` : ''
  const said = status === undefined ? message : `the server answered ${status}: ${message}`
  const pause = retryAfterMs >= 1000 ? `; it asked for a pause of ${duration(retryAfterMs)}` : ''
  const why = late ? `${pause}; there was no other try within ${duration(permitMs)} (\`permitTimeoutMs\`)` : hint()
  return new ManyworldsError(CODES[kind], `${what}: ${said}${often}${why} (${where})`)

  function hint(): string {
    switch (kind) {
      case 'authentication':
        if (status === undefined) return '; correct `baseURL`, or have its certificate trusted with NODE_EXTRA_CA_CERTS'
        return apiKeyEnv === undefined
          ? '; it was called without a key: name the variable that has it in `apiKeyEnv`'
          : `; see the key in ${apiKeyEnv}`
      case 'timeout':
        return '; allow more with `timeoutMs` of the model'
      case 'invalid_request':
        return status === 404 || status === 405 ? notFound(message) : ''
      default:
        return pause
    }
  }
}

/** No such model, or nothing at all at that address. */
const notFound = (message: string) =>
  /model/i.test(message)
    ? '; most servers list their models at `baseURL` + /models'
    : '; see whether `baseURL` is right: with most servers it ends with /v1'
