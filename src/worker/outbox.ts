import type { Channel } from '../protocol/channel.ts'
import type { DriverMessage, Emit, Outcome, WorkerMessage } from '../protocol/messages.ts'
import { type PackedStep, packedStepSize } from '../trajectory/packed-step.ts'

/** What has gathered is sent when there is this much of it, or at the end of the turn of the event loop. */
const BATCH_BYTES = 128 * 1024

/**
 * What tasks record, print and come to, on its way to the driver: many in a frame, and of one task always in order. What
 * is large goes by itself, and whatever follows of the same task stays behind it.
 */
export class Outbox {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #arm: () => void
  readonly #bulkLeases = new Set<number>()
  readonly #emitOf = new Map<number, Emit>()
  #outcomes: Outcome[] = []
  #emits: Emit[] = []
  #bytes = 0
  /** While the driver has too much to store: what is said meanwhile. */
  #held: (() => void)[] | undefined

  /** `arm`: asks for a `flush` at the end of the turn. */
  constructor(channel: Channel<WorkerMessage, DriverMessage>, arm: () => void) {
    this.#channel = channel
    this.#arm = arm
  }

  outcome(outcome: Outcome, size: number): void {
    if (this.#held) return void this.#held.push(() => this.outcome(outcome, size))
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

  step(lease: number, step: PackedStep): void {
    if (this.#held) return void this.#held.push(() => this.step(lease, step))
    const size = packedStepSize(step)
    if (size > BATCH_BYTES || this.#bulkLeases.has(lease)) {
      this.flush()
      this.#bulkLeases.add(lease)
      this.#channel.post({ type: 'done', emits: [[lease, [step], []]], outcomes: [] }, size, lease)
      return
    }
    this.#emitFor(lease)[1].push(step)
    this.#grow(size)
  }

  line(lease: number, line: string): void {
    if (this.#held) return void this.#held.push(() => this.line(lease, line))
    this.#emitFor(lease)[2].push(line)
    this.#grow(line.length)
  }

  /** While this is on, everything stays here: an outcome must not overtake the records of its task. */
  hold(on: boolean): void {
    const held = this.#held
    this.#held = on ? (held ?? []) : undefined
    if (!on) for (const say of held ?? []) say()
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
