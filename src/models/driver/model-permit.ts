import type { ServiceCall } from '../../executor/service.ts'
import type { Permit, PermitOutcome, PermitRequest } from './limiter.ts'
import { permitFor } from './permit-for.ts'
import { limiterOf, type RunModel, type UseSoFar } from './run-models.ts'

/** Waits for a permit to call a model. The run counts how the call came out. */
export async function modelPermit(
  model: RunModel,
  call: ServiceCall,
  wanted: Omit<PermitRequest, 'by' | 'signal'>,
): Promise<Permit> {
  const permit = await permitFor(limiterOf(model), call, wanted)
  call.begins()
  let settled = false
  return {
    settle(outcome) {
      // Only the first word about a call is one.
      if (!settled) count(model.use, outcome)
      settled = true
      permit.settle(outcome)
    },
  }
}

function count(use: UseSoFar, { kind, tokens = 0 }: PermitOutcome): void {
  if (kind === 'rate_limit') use.rateLimited++
  else if (kind === 'failed') use.failed++
  else {
    use.calls++
    use.tokens += tokens
  }
}
