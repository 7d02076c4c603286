import { Deque } from '../executor/deque.ts'
import type { Channel } from '../protocol/channel.ts'
import { type DriverMessage, type Emit, type Outcome, STEP_WINDOW, type WorkerMessage } from '../protocol/messages.ts'
import { type PackedStep, packedStepSize } from '../trajectory/packed-step.ts'

/** What has gathered is sent when there is this much of it, or at the end of the turn of the event loop. */
const BATCH_BYTES = 128 * 1024

/**
 * What tasks record, print and come to, on its way to the driver: many in a frame, and of one task always in order. What
 * is large goes by itself, and whatever follows of the same task stays behind it.
 *
 * No more steps are sent than the driver can store: with a window's worth of them on the way, everything stays here until
 * it says that it has stored some. Also outcomes, which must not overtake the steps of their task.
 */
export class Outbox {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #arm: () => void
  /** There is room for steps again. */
  readonly #roomAgain: () => void
  readonly #bulkLeases = new Set<number>()
  readonly #emitOf = new Map<number, Emit>()
  #outcomes: Outcome[] = []
  #emits: Emit[] = []
  #bytes = 0
  /** Bytes of steps that were sent and are not yet stored. */
  #unstored = 0
  /** What is said while the window is full. */
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

  /** The driver has stored so many bytes of steps, or needs to store them no longer. */
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

  /** The process ends: what is kept goes now or never. */
  last(): void {
    for (const say of this.#kept.drain()) say()
    this.flush()
  }

  flush(): void {
    if (this.#outcomes.length === 0 && this.#emits.length === 0) return
    const message: WorkerMessage = { type: 'done', emits: this.#emits, outcomes: this.#outcomes }
    const size = this.#bytes
    this.#outcomes = []
    this.#emits = []
    if (this.#emitOf.size > 0) this.#emitOf.clear()
    this.#bytes = 0
    this.#channel.post(message, size)
  }

  #outcome(outcome: Outcome, size: number): void {
    const lease = outcome[0]
    const behindBulk = this.#bulkLeases.delete(lease)
    if (behindBulk || size > BATCH_BYTES) {
      this.flush()
      this.#channel.post({ type: 'done', emits: [], outcomes: [outcome] }, size, lease)
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
      this.#channel.post({ type: 'done', emits: [[lease, [step], []]], outcomes: [] }, size, lease)
    } else {
      this.#emitFor(lease)[1].push(step)
      this.#grow(size)
    }
    if (this.#unstored >= STEP_WINDOW) this.#room ??= Promise.withResolvers<void>()
  }

  #line(lease: number, line: string): void {
    this.#emitFor(lease)[2].push(line)
    this.#grow(line.length)
  }

  #emitFor(lease: number): Emit {
    let emit = this.#emitOf.get(lease)
    if (emit === undefined) {
      emit = [lease, [], []]
      this.#emitOf.set(lease, emit)
      this.#emits.push(emit)
    }
    return emit
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > BATCH_BYTES) this.flush()
    else this.#arm()
  }
}
