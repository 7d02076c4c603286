import type { ServiceCall } from '../../executor/service.ts'
import type { Limiter, Permit, PermitRequest } from './limiter.ts'

/** Waits for a permit of a limiter on behalf of a task, whose clock stands if there is none at once. */
export async function permitFor(
  limiter: Limiter,
  call: ServiceCall,
  wanted: Omit<PermitRequest, 'by' | 'signal'>,
): Promise<Permit> {
  let isThere = false
  const permit = limiter.acquire({ by: call.lease, signal: call.signal, ...wanted }).finally(() => {
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
