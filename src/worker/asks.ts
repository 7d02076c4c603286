import { Deque } from '../executor/deque.ts'
import type { OpenAsk } from './requests.ts'

/** The requests of one task, and how it waits for them. Only tasks that ask have this. */
export class Asks {
  /** Requests without an answer. */
  readonly open = new Set<OpenAsk>()
  /** How many of them were made with `slot: 'give'`, and how many with `clock: 'stands'`. */
  withoutSlot = 0
  withClockStopped = 0
  /** How many were sent, of those that count for the limit; and those beyond the limit, which are sent later. */
  sent = 0
  readonly waiting = new Deque<OpenAsk>()
  /** How long the task's clock stood so far, and since when it stands now; 0: it runs. */
  stoodMs = 0
  standsSince = 0
  /** What was left of the task's timeout when its clock was stopped. */
  msLeft = 0

  stoodUntil(now: number): number {
    return this.stoodMs + (this.standsSince > 0 ? now - this.standsSince : 0)
  }
}
