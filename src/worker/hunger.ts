import type { Slots } from './slots.ts'

/**
 * Tells the driver that this worker could take more tasks: once for each batch that it was given, when all of the batch is
 * running and none of it is done. It is waiting for I/O then, and does not compute. If it waits for a turn at a service of
 * the driver, more tasks would wait too: the driver knows that.
 */
export class Hunger {
  readonly #slots: Slots
  readonly #say: () => void
  /** A batch has come, and it was not said yet. */
  #fresh = false

  constructor(slots: Slots, say: () => void) {
    this.#slots = slots
    this.#say = say
  }

  fed(): void {
    this.#fresh = true
  }

  /** Nothing waits to be started. */
  sayIfHungry(): void {
    if (!this.#fresh) return
    const { taken, total } = this.#slots
    this.#fresh = false
    if (taken > 0 && taken < total) this.#say()
  }
}
