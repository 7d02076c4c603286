import { Deque } from '../executor/deque.ts'
import type { OpenAsk } from './requests.ts'

/** What a task has asked the driver for, and how it waits. Made for tasks that ask. */
export class Asks {
  /** Requests without an answer. */
  readonly open = new Set<OpenAsk>()
  /** Of these, how many gave the task's slot to others, and under how many its clock stands. */
  withoutSlot = 0
  withClockStopped = 0
  /** Requests that count for the limit and that the driver knows of; and those that wait until it has answered some. */
  sent = 0
  readonly waiting = new Deque<OpenAsk>()
  /** How long the task's clock has stood, and since when it stands; 0: it runs. */
  stoodMs = 0
  standsSince = 0
  /** What was left of its timeout when its clock was stopped. */
  msLeft = 0

  stoodUntil(now: number): number {
    return this.stoodMs + (this.standsSince > 0 ? now - this.standsSince : 0)
  }
}
