import type { ServiceCall } from '../../executor/service.ts'
import type { Limiter, Permit, PermitRequest } from './limiter.ts'

/** Waits for a permit on behalf of a task, whose timeout is paused if there is none immediately. */
export async function permitFor(
  limiter: Limiter,
  call: ServiceCall,
  wanted: Omit<PermitRequest, 'by' | 'signal'>,
  signal = call.signal,
): Promise<Permit> {
  let isThere = false
  const permit = limiter.acquire({ by: call.lease, signal, ...wanted }).finally(() => {
    isThere = true
  })
  // An available permit arrives within a few microtasks.
  for (let turn = 0; turn < 4 && !isThere; turn++) await undefined
  if (isThere) return permit
  call.waiting(true)
  try {
    return await permit
  } finally {
    call.waiting(false)
  }
}
