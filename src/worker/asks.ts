import { Deque } from '../deque.ts'
import type { OpenAsk } from './requests.ts'

/** The requests of one task, and how it waits for them. Made with the first request. */
export class Asks {
  /** Requests without an answer. */
  readonly open = new Set<OpenAsk>()
  /** How many of them were made with `slot: 'give'`, and how many with `clock: 'stands'`. */
  withoutSlot = 0
  withClockStopped = 0
  /** How many of those that count for the limit were sent; and those beyond the limit, which are sent later. */
  sent = 0
  readonly waiting = new Deque<OpenAsk>()
  /** How long the task's clock was stopped so far, and since when it is stopped now; 0: it runs. */
  stoodMs = 0
  standsSince = 0
  /** What was left of the task's timeout when its clock was stopped. */
  msLeft = 0

  stoodUntil(now: number): number {
    return this.stoodMs + (this.standsSince > 0 ? now - this.standsSince : 0)
  }
}
