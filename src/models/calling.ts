import { ManyworldsError } from '../errors.ts'
import { duration } from '../text/quantities.ts'
import { checkReply, failureWithout } from './check-reply.ts'
import { count, tokenCount } from './completion.ts'
import type { Permit, PermitOutcome, PermitRequest } from './driver/limiter.ts'
import { CODES, type Failure, isNotFound, isRetryable, sharedKind } from './failures.ts'
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
  /**
   * The model's breaker decides about failures that all its calls share: until then they are tried again, by
   * asking for another permit. Without it, or with `maxRetries: 0`, such a failure ends the call; the breaker is told in any case.
   */
  readonly hasBreaker?: boolean
  /** The server may be loading the model: "not found" says nothing about other calls. */
  readonly mayLoad?: boolean
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
/** How often a call is repeated that was refused for a reason that others share. The breaker opens earlier, unless they succeed. */
const MAX_REFUSED = 5
const REFUSED_WAIT_MS = 200
/** The same for a server that only this call cannot reach, as a multiple of the patience. The breaker opens earlier. */
const LONGEST_PATIENCE = 5
const NO_RETRIES_PATIENCE_MS = 10_000
/** Longer than the back-off before the first retry. */
const LEAST_PATIENCE_MS = 1000
/** Rate-limited calls normally end by `permitMs`; this limits servers whose refusals cause no waiting. */
const MAX_LIMITED = 1000

/** Calls a model until it answers: the only place that retries. */
export async function callModel<Answer>(calling: Calling<Answer>): Promise<Called<Answer>> {
  const { permitMs, maxRetries } = calling
  let waitedMs = 0
  let limited = 0
  let failed = 0
  let refused = 0
  let unreachable = 0
  let unreachableSince: number | undefined
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
      return {
        answer,
        retries: limited + failed + refused + unreachable + again,
        waitedMs,
        ms: performance.now() - began,
      }
    }
    last = failure
    const tries = limited + failed + refused + unreachable + 1
    const now = performance.now()
    if (!failure.unreachable) unreachableSince = undefined
    const shared = hasBreaker(calling) ? sharedBy(calling, failure) : undefined
    if (shared === 'refused') {
      if (++refused > MAX_REFUSED) throw callError(calling, failure, tries)
      wanted = { first: true, notBefore: now + REFUSED_WAIT_MS }
      continue
    }
    if (shared === 'unreachable') {
      unreachableSince ??= now
      if (now - unreachableSince > LONGEST_PATIENCE * patienceOf(maxRetries)) throw callError(calling, failure, tries)
      wanted = { first: true, notBefore: now + backoffOf(++unreachable) }
      continue
    }
    if (!isRetryable(failure)) throw callError(calling, failure, tries)
    if (failure.kind === 'rate_limit') {
      if (++limited > MAX_LIMITED || waitedMs >= permitMs) throw callError(calling, failure, tries, true)
      wanted = { first: true }
    } else {
      if (++failed > maxRetries) throw callError(calling, failure, tries)
      const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
      wanted = { first: true, notBefore: performance.now() + Math.max(backoffOf(failed), asked) }
    }
  }
}

/** Before the nth retry. */
const backoffOf = (nth: number) => Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (nth - 1)) * (0.5 + Math.random() / 2)

/** How long so many retries take: the time that an unreachable server gets. Without retries it gets some time, too. */
export function patienceOf(maxRetries: number): number {
  if (maxRetries === 0) return NO_RETRIES_PATIENCE_MS
  let ms = 0
  for (let nth = 0; nth < maxRetries; nth++) ms += Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** nth) * 0.75
  return Math.max(ms, LEAST_PATIENCE_MS)
}

const hasBreaker = ({ hasBreaker, maxRetries }: Pick<Calling<unknown>, 'hasBreaker' | 'maxRetries'>) =>
  hasBreaker === true && maxRetries > 0

const sharedBy = ({ mayLoad }: Pick<Calling<unknown>, 'mayLoad'>, failure: Failure) =>
  mayLoad && isNotFound(failure.status) ? undefined : sharedKind(failure)

const isTooLate = (error: unknown) => ManyworldsError.is(error) && error.code === 'MODEL_PERMIT_TIMEOUT'

/** The permit is settled in any case. */
async function tryOnce<Answer>(calling: Calling<Answer>, permit: Permit): Promise<Attempt<Answer>> {
  let outcome: PermitOutcome = { kind: 'failed' }
  try {
    const tried = await calling.attempt()
    const { failure } = tried
    if (failure === undefined) outcome = { kind: 'ok', ...(tried.tokens !== undefined && { tokens: tried.tokens }) }
    else {
      const kind = failure.kind === 'rate_limit' ? 'rate_limit' : 'failed'
      const { retryAfterMs, status } = failure
      const shared = sharedBy(calling, failure)
      outcome = {
        kind,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
        ...(shared && {
          shared: { kind: shared, ...(status !== undefined && { status }), why: whyFailed(calling, failure) },
        }),
      }
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
  const { input, output } = tokenCount(completion.usage)
  const { again = 0 } = reply
  const sum = input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0)
  return { answer: reply, tokens: count(completion.usage?.total_tokens) ?? sum, again }
}

/** `late`: there was no time for another attempt. */
function callError(
  calling: Pick<Calling<unknown>, 'what' | 'where' | 'apiKeyEnv' | 'permitMs'>,
  failure: Failure,
  tries: number,
  late = false,
): ManyworldsError {
  const { what, where, permitMs } = calling
  const often = tries > 1 ? ` (${tries} attempts)` : ''
  const why = late
    ? `${pauseOf(failure)}; no further attempt was possible within ${duration(permitMs)} (\`permitTimeoutMs\`)`
    : hintOf(calling, failure)
  return new ManyworldsError(CODES[failure.kind], `${what}: ${problemOf(failure)}${often}${why} (${where})`)
}

/** What happened and what to do, without the model. */
const whyFailed = (calling: Pick<Calling<unknown>, 'apiKeyEnv'>, failure: Failure): string =>
  problemOf(failure) + hintOf(calling, failure)

const problemOf = ({ status, message }: Failure) =>
  status === undefined ? message : `the server answered HTTP ${status}: ${message}`

const pauseOf = ({ retryAfterMs = 0 }: Failure) =>
  retryAfterMs >= 1000 ? `; it asked for a pause of ${duration(retryAfterMs)}` : ''

function hintOf({ apiKeyEnv }: Pick<Calling<unknown>, 'apiKeyEnv'>, failure: Failure): string {
  const { kind, status, message } = failure
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
      return isNotFound(status) ? notFound(message) : ''
    default:
      return pauseOf(failure)
  }
}

/** Either the model or the address is unknown. */
const notFound = (message: string) =>
  /model/i.test(message)
    ? '; most servers list their models at `baseURL` + /models'
    : '; check `baseURL`: with most servers it ends with /v1'
