import type { ServiceCall } from '../../executor/service.ts'
import type { Breaker } from './breaker.ts'
import type { Permit, PermitOutcome, PermitRequest } from './limiter.ts'
import { permitFor } from './permit-for.ts'
import { limiterOf, type ModelUse, type RunModel } from './run-models.ts'

/**
 * Waits for a permit to call a model. The outcome of the call is counted for the run, and told to the model's breaker. Rejects
 * with the breaker's error when it stops calls.
 */
export async function modelPermit(
  model: RunModel,
  call: ServiceCall,
  wanted: Omit<PermitRequest, 'by' | 'signal'>,
): Promise<Permit> {
  const permit = await unlessStopped(model.breaker, call.signal, (signal) =>
    permitFor(limiterOf(model), call, { ...wanted, tokens: reservedOf(model, wanted.tokens) }, signal),
  )
  await call.begins()
  model.breaker.begins()
  let settled = false
  return {
    settle(outcome) {
      // Only the first outcome of a call counts.
      if (!settled) {
        count(model.use, outcome)
        if (outcome.kind === 'ok') {
          model.breaker.answered()
          if (!outcome.tokens) model.uncounted()
        } else model.breaker.failed(outcome.shared)
      }
      settled = true
      permit.settle(outcome)
    },
  }
}

/** The largest fraction of a limit that an estimate may reserve: what a call really uses is counted afterwards. */
const MAX_RESERVED = 0.5

function reservedOf(model: RunModel, estimate: number): number {
  const limit = model.kind === 'server' ? model.settings.tokensPerMinute : undefined
  return limit === undefined ? estimate : Math.min(estimate, limit * MAX_RESERVED)
}

/** Calls `wait` with a signal that is aborted with `taken`, or when the breaker stops calls. */
async function unlessStopped<Result>(
  breaker: Breaker,
  taken: AbortSignal,
  wait: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (breaker.error) throw breaker.error
  const ending = new AbortController()
  const abort = () => ending.abort(taken.reason)
  if (taken.aborted) abort()
  taken.addEventListener('abort', abort, { once: true })
  const unlisten = breaker.onOpen(() => ending.abort(breaker.error))
  try {
    return await wait(ending.signal)
  } finally {
    unlisten()
    taken.removeEventListener('abort', abort)
  }
}

function count(use: ModelUse, { kind, tokens = 0 }: PermitOutcome): void {
  if (kind === 'rate_limit') use.rateLimited++
  else if (kind === 'failed') use.failed++
  else {
    use.calls++
    use.tokens += tokens
  }
}
