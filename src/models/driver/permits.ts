import type { ServiceCall } from '../../executor/service.ts'
import type { Lease } from '../../executor/task-entry.ts'
import { MAX_OPEN_REQUESTS, type Packed } from '../../protocol/messages.ts'
import { pack } from '../../protocol/pack.ts'
import { readPacked } from '../../protocol/read-packed.ts'
import { MAX_TIMER_MS } from '../../task-checks.ts'
import type { PermitOutcome } from './limiter.ts'
import { modelPermit } from './model-permit.ts'
import { readPermit, readSettled } from './read-asked.ts'
import { callMsOf, permitMsOf, type RunModel, type RunModels } from './run-models.ts'

/** Each permit needs a separate request, and a task has a limited number; those just settled may still be open. */
const MAX_ASKED = 4 * MAX_OPEN_REQUESTS

/**
 * How long a worker may keep a permit, in case it hangs or is not our program: the longest duration of a call, which is
 * sent at most twice.
 */
const holdMsOf = (model: RunModel) => Math.min(2 * callMsOf(model) + LATE_MS, MAX_TIMER_MS)
const LATE_MS = 5000

type Settling = Map<number, (outcome: PermitOutcome) => void>

interface TaskPermits {
  /** The number of permits it waits for or holds. */
  asked: number
  /** By permit number. */
  readonly settle: Settling
}

/**
 * Permits for calls that workers make themselves. The request for a permit stays open during the call, so the permit is
 * released when the task or its worker ends.
 */
export class Permits {
  readonly #models: RunModels
  readonly #open = new WeakMap<Lease, TaskPermits>()

  constructor(models: RunModels) {
    this.#models = models
  }

  async *give(call: ServiceCall): AsyncGenerator<Packed> {
    const permits = this.#of(call.lease)
    if (permits.asked >= MAX_ASKED) throw new RangeError(`more than ${MAX_ASKED} permits for one task`)
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
    // Only for calls that workers make: the outcome that they report changes the rate of others.
    if (model.kind === 'object' || model.via !== 'direct')
      throw new TypeError(`the driver makes the calls of model '${model.name}'`)
    const notBefore = delayMs > 0 ? performance.now() + delayMs : undefined
    const permit = await modelPermit(model, call, { tokens, waitMs, first, ...(notBefore && { notBefore }) })
    const { lease, signal } = call
    await lease.asks?.open.get(made)?.begins()
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
      // Does nothing if it was already settled.
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
