import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'
import type { Asking } from './requests.ts'
import type { Slots } from './slots.ts'
import type { Timeouts } from './timeouts.ts'

interface Resuming {
  readonly task: TaskContext
  readonly resume: () => void
  readonly fail: (reason: Error) => void
}

type Way = Pick<Asking, 'slot' | 'clock' | 'limitMs'>

/**
 * How tasks wait for the driver. A task may release its slot while it waits: otherwise a parent and its only child would
 * deadlock on a single worker. When its last such request is answered, it gets the next free slot. The task's clock is stopped
 * while a request with `clock: 'stands'` is open.
 */
export class Waiting {
  readonly #slots: Slots
  readonly #timeouts: Timeouts
  readonly #release: (task: TaskContext) => void
  /** Tasks that have their answer and wait for a slot. */
  #resuming: Resuming[] = []

  /** `release`: frees the slot of this task. */
  constructor(slots: Slots, timeouts: Timeouts, release: (task: TaskContext) => void) {
    this.#slots = slots
    this.#timeouts = timeouts
    this.#release = release
  }

  begin(task: TaskContext, asks: Asks, { slot, clock, limitMs }: Way): void {
    if (clock === 'stands') this.stopClock(task, asks, limitMs)
    if (slot === 'give' && asks.withoutSlot++ === 0) this.#release(task)
  }

  /** Stops the clock for at most `limitMs`. */
  stopClock(task: TaskContext, asks: Asks, limitMs: number): void {
    asks.withClockStopped++
    this.#timeouts.stop(task, asks, limitMs)
  }

  startClock(task: TaskContext, asks: Asks): void {
    if (--asks.withClockStopped === 0 && !task.settled) this.#timeouts.go(task, asks)
  }

  /** The task continues, at once or when a slot is free. `fail`: called if it is abandoned before that. */
  end(task: TaskContext, asks: Asks, { slot, clock }: Way, goOn: () => void, fail: (reason: Error) => void): void {
    const hasSlot = slot === 'keep' || --asks.withoutSlot > 0 || task.settled || this.#slots.take(task)
    const resume = () => {
      if (clock === 'stands') this.startClock(task, asks)
      goOn()
    }
    if (hasSlot) resume()
    else this.#resuming.push({ task, resume, fail })
  }

  /** Lets a waiting task continue in the slot that has become free. False: no task waits. */
  resumeOne(): boolean {
    const next = this.#resuming.shift()
    if (next === undefined) return false
    this.#slots.take(next.task)
    next.resume()
    return true
  }

  /** The task is over and no longer waits for a slot. `reason`: it was abandoned, and its code gets this error. */
  leave(task: TaskContext, reason: Error | undefined): void {
    if (task.holdsSlot || this.#resuming.length === 0) return
    const left = this.#resuming.filter((one) => one.task === task)
    this.#resuming = this.#resuming.filter((one) => one.task !== task)
    if (reason) for (const { fail } of left) fail(reason)
  }
}
