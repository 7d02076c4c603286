import type { Lease } from '../executor/task-entry.ts'
import { opened, type PackedStep } from '../trajectory/packed-step.ts'
import type { Step } from '../trajectory/step.ts'
import { StepUnpacker } from '../trajectory/unpack-steps.ts'

/** Passes steps to `onStep` once they are on disk. Exists only if the run has `onStep`. */
export class StepWatch {
  readonly #tell: (task: string, attempt: number, steps: readonly Step[]) => void
  readonly #notice: (line: string) => void
  /** Undefined for a lease: its steps cannot be read. */
  readonly #unpackers = new WeakMap<Lease, StepUnpacker | undefined>()

  constructor(tell: (task: string, attempt: number, steps: readonly Step[]) => void, notice: (line: string) => void) {
    this.#tell = tell
    this.#notice = notice
  }

  committed(lease: Lease, steps: readonly PackedStep[]): void {
    if (!this.#unpackers.has(lease)) this.#unpackers.set(lease, new StepUnpacker())
    const unpacker = this.#unpackers.get(lease)
    if (unpacker === undefined) return
    const { entry, attempt } = lease
    try {
      const read = steps.map((step) => unpacker.next(opened(step)))
      this.#tell(entry.id, attempt, read)
    } catch (error) {
      // Only a worker that breaks the protocol sends such steps. They must not end the run.
      this.#unpackers.set(lease, undefined)
      const why = error instanceof Error ? error.message : String(error)
      this.#notice(`steps of task '${entry.id}' cannot be read, so onStep is not called for them: ${why}`)
    }
  }
}
