import type { CallOutcome, Permit } from '../calling.ts'

export interface LimiterSettings {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  readonly maxConcurrent?: number
}
export interface PermitRequest {
  readonly by: object
  readonly tokens: number
  readonly signal: AbortSignal
  readonly waitMs?: number
  readonly notBefore?: number
  readonly first?: boolean
}
export interface LimiterState {
  readonly queued: number
  readonly inFlight: number
  readonly ratePerSecond: number
}
export class Limiter {
  readonly state: LimiterState = { queued: 0, inFlight: 0, ratePerSecond: 0 }
  constructor(_: LimiterSettings) {}
  async acquire({ notBefore = 0 }: PermitRequest): Promise<Permit> {
    const wait = notBefore - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    return { settle(_: CallOutcome) {} }
  }
}
