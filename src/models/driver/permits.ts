import type { Lease } from '../../executor/entry.ts'
import type { ServiceCall } from '../../executor/service.ts'
import type { Packed } from '../../protocol/messages.ts'
import { pack } from '../../protocol/pack.ts'
import { readPacked } from '../../protocol/read-packed.ts'
import type { PermitAsked, SettleAsked } from '../protocol.ts'
import type { PermitOutcome } from './limiter.ts'
import { modelPermit } from './model-permit.ts'
import type { RunModels } from './run-models.ts'

/**
 * Permits for calls that workers make themselves. The request for one stays open while the call is made, so whatever ends the task or
 * its worker gives the permit back.
 */
export class Permits {
  readonly #models: RunModels
  readonly #open = new WeakMap<Lease, Map<number, (outcome: PermitOutcome) => void>>()

  constructor(models: RunModels) {
    this.#models = models
  }

  async *give(call: ServiceCall): AsyncGenerator<Packed> {
    const {
      model: name,
      permit: number,
      call: made,
      tokens,
      waitMs,
      delayMs,
      first,
    } = readPacked(call.body) as PermitAsked
    const model = this.#models.get(name)
    const notBefore = delayMs > 0 ? performance.now() + delayMs : undefined
    const permit = await modelPermit(model, call, { tokens, waitMs, first, ...(notBefore && { notBefore }) })
    const { lease, signal } = call
    lease.asks?.open.get(made)?.begins()
    const settled = new Promise<PermitOutcome | undefined>((resolve) => {
      this.#of(lease).set(number, resolve)
      if (signal.aborted) resolve(undefined)
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    try {
      yield pack(true)
      const outcome = await settled
      permit.settle(outcome ?? { kind: 'failed' })
    } finally {
      // Nothing, if it is settled.
      permit.settle({ kind: 'failed' })
      this.#of(lease).delete(number)
    }
  }

  settle({ lease, body }: ServiceCall): Packed {
    const { permit, outcome } = readPacked(body) as SettleAsked
    this.#of(lease).get(permit)?.(outcome)
    return pack(true)
  }

  #of(lease: Lease): Map<number, (outcome: PermitOutcome) => void> {
    let open = this.#open.get(lease)
    if (open === undefined) this.#open.set(lease, (open = new Map()))
    return open
  }
}
