import type { Lease } from '../../executor/entry.ts'
import type { ServiceCall } from '../../executor/service.ts'
import { MAX_OPEN_REQUESTS, type Packed } from '../../protocol/messages.ts'
import { pack } from '../../protocol/pack.ts'
import { readPacked } from '../../protocol/read-packed.ts'
import { MAX_TIMER_MS } from '../../task-checks.ts'
import type { PermitOutcome } from './limiter.ts'
import { modelPermit } from './model-permit.ts'
import { readPermit, readSettled } from './read-asked.ts'
import { callMsOf, permitMsOf, type RunModel, type RunModels } from './run-models.ts'

/** Each is for a request of its own, of which a task has so many; those that it has just settled may still be open. */
const MOST_ASKED = 4 * MAX_OPEN_REQUESTS

/** A worker that stands still, or is none of ours, may keep a permit for as long as a call can take; a call is sent twice at most. */
const holdMsOf = (model: RunModel) => Math.min(2 * callMsOf(model) + LATE_MS, MAX_TIMER_MS)
const LATE_MS = 5000

type Settling = Map<number, (outcome: PermitOutcome) => void>

interface TaskPermits {
  /** How many it waits for, or has. */
  asked: number
  /** By the number of the permit. */
  readonly settle: Settling
}

/**
 * Permits for calls that workers make themselves. The request for one stays open while the call is made, so whatever ends the task or
 * its worker gives the permit back.
 */
export class Permits {
  readonly #models: RunModels
  readonly #open = new WeakMap<Lease, TaskPermits>()

  constructor(models: RunModels) {
    this.#models = models
  }

  async *give(call: ServiceCall): AsyncGenerator<Packed> {
    const permits = this.#of(call.lease)
    if (permits.asked >= MOST_ASKED) throw new RangeError(`more than ${MOST_ASKED} permits for one task`)
    permits.asked++
    try {
      yield* this.#give(call, permits.settle)
    } finally {
      permits.asked--
    }
  }

  async *#give(call: ServiceCall, settle: Settling): AsyncGenerator<Packed> {
    const asked = readPermit(readPacked(call.body), (name) => permitMsOf(this.#models.get(name)))
    const { permit: number, call: made, tokens, waitMs, delayMs, first } = asked
    const model = this.#models.get(asked.model)
    const notBefore = delayMs > 0 ? performance.now() + delayMs : undefined
    const permit = await modelPermit(model, call, { tokens, waitMs, first, ...(notBefore && { notBefore }) })
    const { lease, signal } = call
    lease.asks?.open.get(made)?.begins()
    let lost: NodeJS.Timeout | undefined
    const settled = new Promise<PermitOutcome | undefined>((resolve) => {
      settle.set(number, resolve)
      if (signal.aborted) resolve(undefined)
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
      lost = setTimeout(() => resolve(undefined), holdMsOf(model)).unref()
    })
    try {
      yield pack(true)
      const outcome = await settled
      permit.settle(outcome ?? { kind: 'failed' })
    } finally {
      clearTimeout(lost)
      // Nothing, if it is settled.
      permit.settle({ kind: 'failed' })
      settle.delete(number)
    }
  }

  settle({ lease, body }: ServiceCall): Packed {
    const { permit, outcome } = readSettled(readPacked(body))
    this.#of(lease).settle.get(permit)?.(outcome)
    return pack(true)
  }

  #of(lease: Lease): TaskPermits {
    let open = this.#open.get(lease)
    if (open === undefined) this.#open.set(lease, (open = { asked: 0, settle: new Map() }))
    return open
  }
}
