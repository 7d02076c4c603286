/**
 * Incoming frames of a link, in order: passed to the listener, or held while there is none or the executor has paused
 * the link.
 */
export class HeldFrames {
  readonly #held: Uint8Array[] = []
  #listener: ((frame: Uint8Array) => void) | undefined
  #paused = false

  get isEmpty(): boolean {
    return this.#held.length === 0
  }

  listen(listener: (frame: Uint8Array) => void): void {
    this.#listener = listener
  }

  pause(): void {
    this.#paused = true
  }

  /** Passes on what was held, until the listener pauses again. */
  resume(): void {
    this.#paused = false
    while (this.#held.length > 0 && !this.#paused && this.#listener) this.#listener(this.#held.shift()!)
  }

  /** True: the frame was passed on. False: it is held. */
  add(frame: Uint8Array): boolean {
    // Also hold it behind others, to keep the order: the listener may resume while it is being called.
    if (this.#paused || this.#listener === undefined || this.#held.length > 0) {
      this.#held.push(frame)
      return false
    }
    this.#listener(frame)
    return true
  }

  /** The link is over: passes everything on, paused or not. */
  flush(): void {
    for (const frame of this.#held.splice(0)) this.#listener?.(frame)
  }
}
