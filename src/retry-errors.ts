/** A marker instead of `instanceof`, so that it is recognized across two copies of the package in one process. */
const RETRY = Symbol.for('manyworlds.retry')

/** The longest wait that an agent can ask for: an hour. */
export const RETRY_AFTER_MAX_MS = 60 * 60 * 1000

/**
 * Thrown by an agent: the same attempt may succeed later. The task is tried again up to its `maxAttempts`, or 3 times if neither
 * the run nor the task sets it.
 *
 * @example
 * if (reply.status === 429) throw new RetryableError('rate limited', { retryAfterMs: 2000 })
 */
export class RetryableError extends Error {
  readonly [RETRY] = 'retryable'
  /** How long to wait before the next attempt, instead of the usual backoff. More than an hour counts as an hour. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {}) {
    super(message, causeIn(options))
    this.name = 'RetryableError'
    const { retryAfterMs } = options
    if (retryAfterMs !== undefined && !isWait(retryAfterMs))
      throw new TypeError(
        `RetryableError('${message}'): 'retryAfterMs' must be a finite number of at least 0 milliseconds, it is ${String(retryAfterMs)}`,
        causeIn(options),
      )
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Thrown by an agent: every further attempt would fail too. The task is not tried again, whatever `maxAttempts` and `retryIf` say.
 *
 * @example
 * if (reply.status === 401) throw new FatalError('the API key is not valid')
 */
export class FatalError extends Error {
  readonly [RETRY] = 'fatal'

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, causeIn(options))
    this.name = 'FatalError'
  }
}

/** Whether the thrown value asks for another attempt; its `cause` does not count. Never throws. */
export function retryOf(thrown: unknown): { retryable?: boolean; retryAfterMs?: number } {
  try {
    if (typeof thrown !== 'object' || thrown === null) return {}
    const { [RETRY]: kind, retryAfterMs } = thrown as { [RETRY]?: unknown; retryAfterMs?: unknown }
    if (kind === 'fatal') return { retryable: false }
    if (kind !== 'retryable') return {}
    if (!isWait(retryAfterMs)) return { retryable: true }
    return { retryable: true, retryAfterMs: Math.min(retryAfterMs, RETRY_AFTER_MAX_MS) }
  } catch {
    // A getter or a proxy threw.
    return {}
  }
}

const isWait = (value: unknown): value is number => Number.isFinite(value) && (value as number) >= 0

/** Leaves the key out if there is no cause: `cause: undefined` would count as one. */
const causeIn = (options: { readonly cause?: unknown }) => ('cause' in options ? { cause: options.cause } : undefined)
