import type { Channel } from '../protocol/channel.ts'
import type { DriverMessage, TaskItem, WorkerMessage } from '../protocol/messages.ts'
import type { Slots } from './slots.ts'

/**
 * Tasks of which the driver must know that they start: suspects, so that a crash shows which of them it was, and tasks that
 * must never be started twice (`rerun: 'never'`), for which the driver first has that on record.
 */
export class CarefulStarts {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #slots: Slots
  readonly #flush: () => void
  /** Tasks that wait for the driver's `go`, and those that have it. */
  readonly #asking = new Map<number, TaskItem>()
  readonly #allowed = new Set<number>()
  /** The lease that was announced last. */
  #announced = 0
  /** This worker has suspects: each start is announced, and each outcome sent at once. */
  suspects = false

  constructor(channel: Channel<WorkerMessage, DriverMessage>, slots: Slots, flush: () => void) {
    this.#channel = channel
    this.#slots = slots
    this.#flush = flush
  }

  /**
   * Whether a task may start. `asking`: the driver was asked, and `go` will bring it back. `later`: the wire is full, and it
   * may start only once the driver knows of it. `once`: it must never be started twice.
   */
  announce(item: TaskItem, once: boolean): 'now' | 'asking' | 'later' {
    const lease = item[0]
    if (once && !this.#allowed.has(lease)) {
      this.#ask(lease, item)
      return 'asking'
    }
    if (!this.#isAnnounced(lease)) return 'later'
    if (once) this.#allowed.delete(lease)
    return 'now'
  }

  /** The driver's answer: the task, which may now start. Undefined: it was cancelled. */
  go(lease: number): TaskItem | undefined {
    const item = this.stopAsking(lease)
    if (item) this.#allowed.add(lease)
    return item
  }

  stopAsking(lease: number): TaskItem | undefined {
    const item = this.#asking.get(lease)
    if (!item) return undefined
    this.#asking.delete(lease)
    this.#slots.taken--
    return item
  }

  /** While it waits for the answer, it has its slot. */
  #ask(lease: number, item: TaskItem): void {
    this.#asking.set(lease, item)
    this.#slots.taken++
    this.#channel.control({ type: 'may-start', lease })
  }

  /** False while that it starts, or anything said before it, could still be lost. */
  #isAnnounced(lease: number): boolean {
    if (this.#announced !== lease) {
      this.#flush()
      this.#channel.control({ type: 'started', leases: [lease] })
      this.#announced = lease
    }
    return !this.#channel.holdsBytes
  }
}
