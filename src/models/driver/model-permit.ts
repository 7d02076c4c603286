import type { ServiceCall } from '../../executor/service.ts'
import type { Permit, PermitOutcome, PermitRequest } from './limiter.ts'
import { permitFor } from './permit-for.ts'
import { limiterOf, type ModelUse, type RunModel } from './run-models.ts'

/** Waits for a permit to call a model. The outcome of the call is counted for the run. */
export async function modelPermit(
  model: RunModel,
  call: ServiceCall,
  wanted: Omit<PermitRequest, 'by' | 'signal'>,
): Promise<Permit> {
  const permit = await permitFor(limiterOf(model), call, wanted)
  await call.begins()
  let settled = false
  return {
    settle(outcome) {
      // Only the first outcome of a call counts.
      if (!settled) count(model.use, outcome)
      settled = true
      permit.settle(outcome)
    },
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
