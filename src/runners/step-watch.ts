import type { Lease } from '../executor/entry.ts'
import { opened, type PackedStep, StepUnpacker } from '../trajectory/packed-step.ts'
import type { Step } from '../trajectory/step.ts'

/** Tells somebody of steps that are on disk, as they were recorded. Made only where somebody wants to know. */
export class StepWatch {
  readonly #tell: (task: string, attempt: number, steps: readonly Step[]) => void
  readonly #unpackers = new WeakMap<Lease, StepUnpacker>()

  constructor(tell: (task: string, attempt: number, steps: readonly Step[]) => void) {
    this.#tell = tell
  }

  committed(lease: Lease, steps: readonly PackedStep[]): void {
    let unpacker = this.#unpackers.get(lease)
    if (unpacker === undefined) this.#unpackers.set(lease, (unpacker = new StepUnpacker()))
    const read = steps.map((step) => unpacker.next(opened(step)))
    this.#tell(lease.entry.id, lease.attempt, read)
  }
}
