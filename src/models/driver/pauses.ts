import { LONGEST_PAUSE_MS } from '../calling.ts'

/** If the server does not say how long to wait: the time of this many requests, doubled with each further refusal. */
const REQUESTS_LONG = 5
const SHORTEST_MS = 100
const FIRST_AT_MOST_MS = 2000
const GUESS_AT_MOST_MS = 30_000

/** Pauses in which nothing is sent, because the server refused a request. */
export class Pauses {
  #until = Number.NEGATIVE_INFINITY
  #began = Number.NEGATIVE_INFINITY
  #refusals = 0

  get until(): number {
    return this.#until
  }

  answered(): void {
    this.#refusals = 0
  }

  refused(sentAt: number, now: number, retryAfterMs: number | undefined, perSecond: number): void {
    // Requests sent before the pause were refused for the same reason.
    const isNew = sentAt >= this.#began
    if (!isNew && retryAfterMs === undefined) return
    if (isNew) {
      this.#began = now
      this.#refusals++
    }
    const guess = Math.min(FIRST_AT_MOST_MS, Math.max(SHORTEST_MS, (REQUESTS_LONG * 1000) / perSecond))
    const ms = retryAfterMs ?? Math.min(GUESS_AT_MOST_MS, guess * 2 ** (this.#refusals - 1))
    this.#until = Math.max(this.#until, now + Math.min(LONGEST_PAUSE_MS, Math.max(0, ms)))
  }
}
