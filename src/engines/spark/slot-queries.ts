import type { Application } from './application.ts'

/** Rows of a query, each with the program in it. */
const MOST_AT_ONCE = 500

/** One query at Spark: its rows are slots. */
export interface SlotQuery {
  /** Those that have not been sent away. */
  readonly slots: Set<number>
  readonly since: number
  /** There is a session for it. */
  asked: boolean
  /** One of its slots has called. */
  called: boolean
  /** Tasks that Spark runs for it, as far as it says. */
  running: number
}

export interface SlotQueriesHooks {
  /** What its slots are told. */
  orders(): string
  /** All slots have ended by themselves, as programs that did what they should. `printed`: what they have said. */
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

  /** Slots that Spark has been asked for, whether they are here already or not. */
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
    // A copy of a slot would be one too many. Of a query with one row, Spark makes none.
    const atOnce = speculates ? 1 : MOST_AT_ONCE
    for (let from = 0; from < slots.length; from += atOnce) void this.#run(slots.slice(from, from + atOnce))
  }

  called(slot: number): void {
    for (const query of this.#all) if (query.slots.has(slot)) query.called = true
  }

  /** It was sent away, and may be asked for again before the others of its query have ended. */
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
