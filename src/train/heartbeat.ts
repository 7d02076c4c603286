/** How often a process that computes says that it is alive. */
export const HEARTBEAT_MS = 1000
/** A process that said nothing for this long is stopped, or its machine is. A program that is swapped out is slow, not dead. */
export const SILENT_MS = 120_000

/**
 * Watches the heartbeats of another process. It counts its own ticks instead of reading a clock: if this process was
 * suspended or busy, the other one is not blamed.
 */
export class Heartbeat {
  readonly #maxMissed: number
  readonly #silent: () => void
  #timer: NodeJS.Timeout | undefined
  #missed = 0

  constructor(silentMs: number, silent: () => void) {
    this.#maxMissed = Math.ceil(silentMs / HEARTBEAT_MS)
    this.#silent = silent
  }

  /** Watches only while an answer is due. */
  watch(isWatched: boolean): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#missed = 0
    if (isWatched) this.#timer = setInterval(() => this.#tick(), HEARTBEAT_MS).unref()
  }

  beat(): void {
    this.#missed = 0
  }

  #tick(): void {
    if (++this.#missed <= this.#maxMissed) return
    this.watch(false)
    this.#silent()
  }
}
