/** What a task has asked the driver for, in numbers. */
export class Asks {
  /** Requests that are open; those of them that gave its slot to others, and those under which its clock stands. */
  open = 0
  withoutSlot = 0
  withClockStopped = 0
  /** Requests that count and that the driver knows of; and what sends those that are too many for that. */
  sent = 0
  readonly waiting: (() => void)[] = []
  /** How long its clock has stood, and since when it stands; 0: it runs. */
  stoodMs = 0
  standsSince = 0
  /** What was left of its time-out when its clock was stopped. */
  msLeft = 0

  stoodUntil(now: number): number {
    return this.stoodMs + (this.standsSince > 0 ? now - this.standsSince : 0)
  }
}
