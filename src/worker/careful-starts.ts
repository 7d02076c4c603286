import type { Channel } from '../protocol/channel.ts'
import type { DriverMessage, TaskItem, WorkerMessage } from '../protocol/messages.ts'
import type { Slots } from './slots.ts'

/**
 * Tasks whose start the driver must know of: suspects, so that a crash shows which of them was running, and tasks with
 * `rerun: 'never'`, whose start the driver stores first.
 */
export class CarefulStarts {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #slots: Slots
  readonly #flush: () => void
  /** Tasks that wait for the driver's `go`, and tasks that have it. */
  readonly #asking = new Map<number, TaskItem>()
  readonly #allowed = new Set<number>()
  /** Leases that were announced and have not started. */
  readonly #announced = new Set<number>()
  /** This worker runs suspects: it announces each start and sends each outcome at once. */
  suspects = false

  constructor(channel: Channel<WorkerMessage, DriverMessage>, slots: Slots, flush: () => void) {
    this.#channel = channel
    this.#slots = slots
    this.#flush = flush
  }

  /**
   * Whether a task may start. `asking`: the driver was asked; `go` will return the task. `later`: the send buffer is full, and
   * the task may start only once the announcement is sent. `once`: the task has `rerun: 'never'`.
   */
  announce(item: TaskItem, once: boolean): 'now' | 'asking' | 'later' {
    const lease = item[0]
    if (once && !this.#allowed.has(lease)) {
      this.#ask(lease, item)
      return 'asking'
    }
    return this.#isAnnounced(lease) ? 'now' : 'later'
  }

  /** Its agent's `setup` is to run for this task. False: not before the announcement is sent. */
  announceSetup([lease]: TaskItem): boolean {
    return this.#isAnnounced(lease)
  }

  /** Whether the driver takes it for started, although it has not. */
  isBegun(lease: number): boolean {
    return this.#announced.has(lease) || this.#allowed.has(lease)
  }

  /** It starts now. */
  starts(lease: number): void {
    if (this.#announced.size > 0) this.#announced.delete(lease)
    if (this.#allowed.size > 0) this.#allowed.delete(lease)
  }

  /** The driver has answered: returns the task, which may now start. Undefined: it was cancelled. */
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

  /** It keeps its slot while it waits for the answer. */
  #ask(lease: number, item: TaskItem): void {
    this.#asking.set(lease, item)
    this.#slots.taken++
    this.#channel.control({ type: 'may-start', lease })
  }

  /** False while the announcement, or anything sent before it, could still be lost. */
  #isAnnounced(lease: number): boolean {
    if (!this.#announced.has(lease)) {
      this.#flush()
      this.#channel.control({ type: 'started', leases: [lease] })
      this.#announced.add(lease)
    }
    return !this.#channel.holdsBytes
  }
}
