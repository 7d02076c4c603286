import { StalenessGate } from './staleness-gate.ts'

/** Is notified as workers take groups. */
export interface GroupWatch {
  /** A group starts. */
  started(): void
  /** All groups have started, and workers have capacity for more. */
  room(): void
}

export interface AheadOptions<Plan, Batch> {
  readonly maxStaleness: number
  /** Groups per update. */
  readonly groups: number
  /** Updates made by earlier sessions. */
  readonly updates: number
  /** Makes the plan of an update, with the current policy; undefined: there should be no such update. */
  readonly plan: (number: number) => Plan | undefined
  readonly groupsOf: (plan: Plan) => number
  readonly collect: (plan: Plan, watch: GroupWatch) => Promise<Batch>
}

/**
 * Collects the batches of coming updates while the learner is busy. Batches are returned in the order of updates, so
 * the `members` of an update are those of its plan; the gate decides how far ahead to collect. With `maxStaleness` 0,
 * nothing is collected before it is requested.
 */
export class CollectionAhead<Plan, Batch> {
  readonly #options: AheadOptions<Plan, Batch>
  readonly #gate: StalenessGate
  readonly #batches = new Map<number, Promise<Batch>>()
  #closed = false

  constructor(options: AheadOptions<Plan, Batch>) {
    this.#options = options
    const { maxStaleness, groups: batch, updates } = options
    this.#gate = new StalenessGate({ maxStaleness, batch, updates })
  }

  /** Waits for the batch of the next update. An error of a collection is thrown when its batch is due. */
  async next(): Promise<Batch | undefined> {
    this.#startNext()
    return this.#batches.get(this.#gate.updates)
  }

  /** The batch was trained on, and there may be a newer version: more may be collected. */
  consumed(): void {
    this.#batches.delete(this.#gate.consume())
    // If nothing was started ahead, the next batch is started when it is requested.
    if (this.#batches.size > 0) this.#startNext()
  }

  /** Starts nothing more, and waits for what was started; the caller must stop the runs. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#batches.values())
  }

  #startNext(): void {
    const number = this.#gate.next
    if (number === undefined || this.#batches.has(number) || this.#closed) return
    const batch = this.#begin(number)
    if (batch === undefined) return
    // `next` throws the error, possibly much later.
    batch.catch(() => {})
    this.#batches.set(number, batch)
  }

  #begin(number: number): Promise<Batch> | undefined {
    const { plan: planOf, groupsOf, collect } = this.#options
    try {
      const plan = planOf(number)
      if (plan === undefined) return undefined
      this.#gate.open(groupsOf(plan))
      const watch = {
        started: () => void this.#gate.start(),
        // Deferred, because workers are being given tasks right now.
        room: () => queueMicrotask(() => this.#startNext()),
      }
      return collect(plan, watch).then((batch) => {
        this.#gate.done(number)
        return batch
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
