import { Deque } from '../deque.ts'
import type { Channel } from '../protocol/channel.ts'
import {
  type DriverMessage,
  type Outcome,
  STEP_WINDOW,
  type TaskRecords,
  type WorkerMessage,
} from '../protocol/messages.ts'
import { type PackedStep, packedStepSize } from '../trajectory/packed-step.ts'

/** The buffer is sent when it reaches this size, or at the end of the event loop turn. */
const BATCH_BYTES = 128 * 1024

/**
 * Steps, printed lines and outcomes on their way to the driver: many in a frame, and those of one task always in order. Large
 * items go in a frame of their own, and later items of the same task stay behind them.
 *
 * At most one window of steps is sent before the driver confirms that it has stored some. While the window is full, everything
 * is kept here, also outcomes, which must not overtake the steps of their task.
 */
export class Outbox {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #arm: () => void
  /** There is room for steps again. */
  readonly #roomAgain: () => void
  readonly #bulkLeases = new Set<number>()
  readonly #recordsOf = new Map<number, TaskRecords>()
  #outcomes: Outcome[] = []
  #records: TaskRecords[] = []
  #bytes = 0
  /** Bytes of steps that were sent and are not yet stored. */
  #unstored = 0
  /** Messages that wait while the window is full. */
  readonly #kept = new Deque<() => void>()
  #room: PromiseWithResolvers<void> | undefined

  /** `arm`: asks for a `flush` at the end of the turn. */
  constructor(channel: Channel<WorkerMessage, DriverMessage>, arm: () => void, roomAgain: () => void) {
    this.#channel = channel
    this.#arm = arm
    this.#roomAgain = roomAgain
  }

  /** Resolves when there is room for steps again; undefined: there is. */
  get room(): Promise<void> | undefined {
    return this.#room?.promise
  }

  outcome(outcome: Outcome, size: number): void {
    if (this.#room) this.#kept.push(() => this.#outcome(outcome, size))
    else this.#outcome(outcome, size)
  }

  step(lease: number, step: PackedStep): void {
    if (this.#room) this.#kept.push(() => this.#step(lease, step))
    else this.#step(lease, step)
  }

  line(lease: number, line: string): void {
    if (this.#room) this.#kept.push(() => this.#line(lease, line))
    else this.#line(lease, line)
  }

  /** The driver has stored these bytes of steps, or no longer needs to. */
  stored(bytes: number): void {
    this.#unstored -= bytes
    if (!this.#room) return
    while (this.#unstored < STEP_WINDOW && this.#kept.length > 0) this.#kept.shift()!()
    if (this.#unstored >= STEP_WINDOW) return
    const { resolve } = this.#room
    this.#room = undefined
    resolve()
    this.#roomAgain()
  }

  /** The process ends: sends everything now. */
  last(): void {
    for (const say of this.#kept.drain()) say()
    this.flush()
  }

  flush(): void {
    if (this.#outcomes.length === 0 && this.#records.length === 0) return
    const message: WorkerMessage = { type: 'done', records: this.#records, outcomes: this.#outcomes }
    const size = this.#bytes
    this.#outcomes = []
    this.#records = []
    if (this.#recordsOf.size > 0) this.#recordsOf.clear()
    this.#bytes = 0
    this.#channel.post(message, size)
  }

  #outcome(outcome: Outcome, size: number): void {
    const lease = outcome[0]
    const behindBulk = this.#bulkLeases.delete(lease)
    if (behindBulk || size > BATCH_BYTES) {
      this.flush()
      this.#channel.post({ type: 'done', records: [], outcomes: [outcome] }, size, lease)
      return
    }
    this.#outcomes.push(outcome)
    this.#grow(size + 24)
  }

  #step(lease: number, step: PackedStep): void {
    const size = packedStepSize(step)
    this.#unstored += size
    if (size > BATCH_BYTES || this.#bulkLeases.has(lease)) {
      this.flush()
      this.#bulkLeases.add(lease)
      this.#channel.post({ type: 'done', records: [[lease, [step], []]], outcomes: [] }, size, lease)
    } else {
      this.#recordsFor(lease)[1].push(step)
      this.#grow(size)
    }
    if (this.#unstored >= STEP_WINDOW) this.#room ??= Promise.withResolvers<void>()
  }

  #line(lease: number, line: string): void {
    this.#recordsFor(lease)[2].push(line)
    this.#grow(line.length)
  }

  #recordsFor(lease: number): TaskRecords {
    let records = this.#recordsOf.get(lease)
    if (records === undefined) {
      records = [lease, [], []]
      this.#recordsOf.set(lease, records)
      this.#records.push(records)
    }
    return records
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > BATCH_BYTES) this.flush()
    else this.#arm()
  }
}
