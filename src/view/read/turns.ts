import { setImmediate as nextTurn } from 'node:timers/promises'

/** The longest time that one request works before others get their turn. */
const TURN_MS = 8

/** Lets other work on the event loop have its turn, if this one has taken long enough. */
export class Turns {
  #began = performance.now()

  get isOver(): boolean {
    return performance.now() - this.#began > TURN_MS
  }

  /** Resolves in a later turn if this one is over. Throws if the request was aborted. */
  async next(signal: AbortSignal): Promise<void> {
    if (!this.isOver) return
    await nextTurn()
    signal.throwIfAborted()
    this.#began = performance.now()
  }
}
