/** How long a task's clock was stopped while the task waited for requests with `clock: 'stands'`. */
export class Clock {
  #stopped = 0
  #since = 0
  #stoodMs = 0

  stop(): void {
    if (this.#stopped++ === 0) this.#since = performance.now()
  }

  go(): void {
    if (--this.#stopped === 0) this.#stoodMs += performance.now() - this.#since
  }

  stoodMs(now: number): number {
    return this.#stoodMs + (this.#stopped > 0 ? now - this.#since : 0)
  }
}
