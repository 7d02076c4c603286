import type { Slots } from './slots.ts'

/**
 * Tells the driver that this worker could take more tasks: once per batch, when all tasks of the batch are running and none is
 * done. Then they wait for I/O and don't compute. If they wait for a turn at a service, the driver knows that and sends none.
 */
export class Hunger {
  readonly #slots: Slots
  readonly #say: () => void
  /** A batch has arrived and `hungry` was not yet sent for it. */
  #fresh = false

  constructor(slots: Slots, say: () => void) {
    this.#slots = slots
    this.#say = say
  }

  fed(): void {
    this.#fresh = true
  }

  /** No task waits to be started. */
  sayIfHungry(): void {
    if (!this.#fresh) return
    const { taken, total } = this.#slots
    this.#fresh = false
    if (taken > 0 && taken < total) this.#say()
  }
}
