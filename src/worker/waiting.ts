import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'
import type { Asking } from './requests.ts'
import type { Slots } from './slots.ts'
import type { Timeouts } from './timeouts.ts'

interface Hooks {
  /** The slot of this task is for others. */
  release(task: TaskContext): void
  /** A task whose clock stood goes on. */
  goesOn(): void
}

type Way = Pick<Asking, 'slot' | 'clock'>

/**
 * How tasks wait for the driver. A task may give its slot back while it waits, since a parent and its only child would
 * otherwise wait for each other on a single worker; it gets the next free one when the last such request is answered. Its
 * clock stands while a request is open for which it is to stand.
 */
export class Waiting {
  readonly #slots: Slots
  readonly #timeouts: Timeouts
  readonly #hooks: Hooks
  /** Tasks that could go on and have no slot. */
  readonly #resuming: { task: TaskContext; resume: () => void }[] = []

  constructor(slots: Slots, timeouts: Timeouts, hooks: Hooks) {
    this.#slots = slots
    this.#timeouts = timeouts
    this.#hooks = hooks
  }

  begin(task: TaskContext, asks: Asks, { slot, clock }: Way): void {
    if (clock === 'stands' && asks.withClockStopped++ === 0) {
      this.#slots.standing++
      this.#timeouts.stop(task, asks)
    }
    if (slot === 'give' && asks.withoutSlot++ === 0) this.#hooks.release(task)
  }

  /** The task goes on: at once, or when there is a slot for it. */
  end(task: TaskContext, asks: Asks, { slot, clock }: Way, goOn: () => void): void {
    const hasSlot = slot === 'keep' || --asks.withoutSlot > 0 || task.settled || this.#slots.take(task)
    const resume = () => {
      if (clock === 'stands' && --asks.withClockStopped === 0 && !task.settled) {
        this.#slots.standing--
        this.#timeouts.go(task, asks)
        this.#hooks.goesOn()
      }
      goOn()
    }
    if (hasSlot) resume()
    else this.#resuming.push({ task, resume })
  }

  /** Lets a task go on in the slot that has just become free. */
  resumeOne(): boolean {
    for (let next = this.#resuming.shift(); next; next = this.#resuming.shift()) {
      if (next.task.settled) {
        next.resume()
        continue
      }
      this.#slots.take(next.task)
      next.resume()
      return true
    }
    return false
  }
}
