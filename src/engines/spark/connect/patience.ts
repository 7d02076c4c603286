import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_MS = 50
const LONGEST_MS = 2000

/** Retries with a growing delay, until too much time has passed without success. */
export class Patience {
  readonly #limitMs: number
  #until: number | undefined
  #nextMs = FIRST_MS

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** A call succeeded. */
  renew(): void {
    this.#until = undefined
    this.#nextMs = FIRST_MS
  }

  /** Waits before the next try. False: give up. */
  async wait({ signal, ref }: { signal?: AbortSignal | undefined; ref: boolean }): Promise<boolean> {
    this.#until ??= Date.now() + this.#limitMs
    const ms = Math.min(this.#nextMs, this.#until - Date.now())
    if (ms <= 0) return false
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_MS)
    // Jitter.
    await sleep(ms * (0.5 + Math.random() / 2), undefined, { ref, ...(signal === undefined ? {} : { signal }) })
    return true
  }
}
