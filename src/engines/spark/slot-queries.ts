import type { Application } from './application.ts'

/** The most rows per query; each contains the program. */
const MOST_AT_ONCE = 500

/** One Spark query, whose rows are slots. */
export interface SlotQuery {
  /** Slots that were not told to end. */
  readonly slots: Set<number>
  readonly since: number
  /** It has a session. */
  asked: boolean
  /** One of its slots has called. */
  called: boolean
  /** Tasks that Spark reports as running for it. */
  running: number
}

export interface SlotQueriesHooks {
  /** The instructions for its slots. */
  orders(): string
  /** All its slots have exited with code 0. `printed`: their output. */
  ended(query: SlotQuery, printed: string): void
  /** Spark has given it up. */
  failed(query: SlotQuery, error: Error): void
}

/** The queries by which Spark is asked for slots. */
export class SlotQueries {
  readonly #application: Application
  readonly #hooks: SlotQueriesHooks
  readonly #all = new Set<SlotQuery>()

  constructor(application: Application, hooks: SlotQueriesHooks) {
    this.#application = application
    this.#hooks = hooks
  }

  get all(): ReadonlySet<SlotQuery> {
    return this.#all
  }

  /** Requested slots, whether they have called or not. */
  get asked(): Set<number> {
    return new Set([...this.#all].flatMap(({ slots }) => [...slots]))
  }

  /** Tasks that Spark runs for all of them. */
  get running(): number {
    let sum = 0
    for (const { running } of this.#all) sum += running
    return sum
  }

  ask(slots: readonly number[], speculates: boolean): void {
    // With speculation, Spark would start copies of slots. It makes none for a query with one row.
    const atOnce = speculates ? 1 : MOST_AT_ONCE
    for (let from = 0; from < slots.length; from += atOnce) void this.#run(slots.slice(from, from + atOnce))
  }

  called(slot: number): void {
    for (const query of this.#all) if (query.slots.has(slot)) query.called = true
  }

  /** A slot was told to end; it may be requested again before the other slots of its query have ended. */
  sentAway(slot: number): void {
    for (const { slots } of this.#all) slots.delete(slot)
  }

  async #run(slots: readonly number[]): Promise<void> {
    const query: SlotQuery = { slots: new Set(slots), since: Date.now(), asked: false, called: false, running: 0 }
    this.#all.add(query)
    try {
      await this.#application.prepare()
      query.asked = true
      const printed = await this.#application.run(slots, this.#hooks.orders(), (running) => {
        query.running = running
      })
      this.#all.delete(query)
      this.#hooks.ended(query, printed)
    } catch (error) {
      this.#all.delete(query)
      this.#hooks.failed(query, error as Error)
    }
  }
}
