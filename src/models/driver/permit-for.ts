import type { ServiceCall } from '../../executor/service.ts'
import type { Permit, PermitWanted } from '../calling.ts'
import { limiterOf, type RunModel } from './run-models.ts'

/** Waits for a permit; the task's clock stands if there is none at once. */
export async function permitFor(
  model: RunModel,
  call: ServiceCall,
  tokens: number,
  wanted: PermitWanted,
): Promise<Permit> {
  let isThere = false
  const permit = limiterOf(model)
    .acquire({ by: call.lease, tokens, signal: call.signal, ...wanted })
    .finally(() => {
      isThere = true
    })
  // A permit that is there already comes within a few turns of the microtask queue.
  for (let turn = 0; turn < 4 && !isThere; turn++) await undefined
  if (isThere) return permit
  call.waiting(true)
  try {
    return await permit
  } finally {
    call.waiting(false)
  }
}
