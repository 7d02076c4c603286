import { StalenessGate } from './staleness-gate.ts'

/** Is told of groups as workers take them. */
export interface GroupWatch {
  /** A group starts. */
  started(): void
  /** All of them have started, and workers have room for more. */
  room(): void
}

export interface AheadOptions<Plan, Batch> {
  readonly maxStaleness: number
  /** Groups of an update. */
  readonly groups: number
  /** Updates that were made before. */
  readonly updates: number
  /** Makes the plan of an update, with the policy of this moment; undefined: there is to be no such update. */
  readonly plan: (number: number) => Plan | undefined
  readonly groupsOf: (plan: Plan) => number
  readonly collect: (plan: Plan, watch: GroupWatch) => Promise<Batch>
}

/**
 * Collects the batches of coming updates while the learner is busy. Batches come in the order of updates, so `members` of an update are those of its plan; how far
 * ahead it goes is for the gate to say. With `maxStaleness` 0 nothing is begun before it is asked for.
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

  /** The batch of the next update, once it is there. What keeps a batch from being collected is thrown when its turn has come. */
  async next(): Promise<Batch | undefined> {
    this.#goOn()
    return this.#batches.get(this.#gate.updates)
  }

  /** The batch has been learned from, and there may be a newer version: more may be collected. */
  consumed(): void {
    this.#batches.delete(this.#gate.consume())
    // If nothing was begun ahead, the next batch is begun when it is asked for.
    if (this.#batches.size > 0) this.#goOn()
  }

  /** Begins nothing more, and waits for what was begun: whoever calls this has it stopped. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#batches.values())
  }

  #goOn(): void {
    const number = this.#gate.next
    if (number === undefined || this.#batches.has(number) || this.#closed) return
    const batch = this.#begin(number)
    if (batch === undefined) return
    // It is thrown by `next`, perhaps long after.
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
        // Later: workers are just being given tasks.
        room: () => queueMicrotask(() => this.#goOn()),
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
