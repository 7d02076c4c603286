import { Deque } from '../../deque.ts'

/**
 * The fraction of a known limit that is used. The rest allows for requests that arrive closer together than they were
 * sent.
 */
export const USED_SHARE = 0.97
/** Timers fire late; up to this much delay is made up for. */
const CATCH_UP_MS = 10
/** The fraction of a request's gap that may be reused when it is given back; more would be a burst. */
const GIVEN_BACK_SHARE = 0.2
/**
 * The maximum gap between two requests for smoothing. A limit of 3 per minute may allow 3 at once, but a limit of 60
 * per minute may be enforced as 1 per second (OpenAI and Anthropic document this); no server is known to count in
 * shorter intervals.
 */
const LONGEST_GAP_MS = 1000

/** The earliest time of the next request: each keeps a gap to the previous one. */
export class Pace {
  #free = Number.NEGATIVE_INFINITY
  /** The time given back and not yet reused. Idle time is not accumulated. */
  #givenBackMs = 0

  get dueAt(): number {
    return this.#free
  }

  took(now: number, gapMs: number): void {
    this.#free = Math.max(this.#free, now - CATCH_UP_MS - this.#givenBackMs) + gapMs
    this.#givenBackMs = Math.max(0, this.#givenBackMs - gapMs)
  }

  /** `gapMs`: the gap reserved for the request, of which `ms` was not needed. */
  giveBack(ms: number, gapMs: number): void {
    this.#free -= ms
    this.#givenBackMs = Math.min(Math.max(0, this.#givenBackMs + ms), gapMs * GIVEN_BACK_SHARE)
  }
}

/** The share of a budget that one request uses. */
export interface Share {
  readonly at: number
  amount: number
  gapMs: number
  readonly factor: number
  /** It is no longer in the window. */
  left: boolean
}

/** A known limit of requests or tokens per window. Usage is spread evenly and never exceeds the limit in any window. */
export class Budget {
  readonly #limit: number
  /** Longer than the server's window, by the unused fraction of the limit. */
  readonly #windowMs: number
  readonly #pace = new Pace()
  /** Shares within the window, oldest first. */
  readonly #shares = new Deque<Share>()
  #used = 0

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs / USED_SHARE
  }

  /**
   * When this amount may be taken, or when to check again. An amount above the limit may be taken if the window is
   * empty.
   */
  dueAt(amount: number, now: number): number {
    this.#forget(now)
    const oldest = this.#shares.peek()
    if (oldest === undefined) return Number.NEGATIVE_INFINITY
    if (this.#used + amount > this.#limit) return oldest.at + this.#windowMs
    return this.#pace.dueAt
  }

  /** `factor`: the fraction of the limit to use; below 1 once the server has refused requests within the limit. */
  take(wanted: number, now: number, factor: number): Share {
    const amount = this.#atMost(wanted)
    const share: Share = { at: now, amount, gapMs: this.#gapOf(amount, factor), factor, left: false }
    this.#shares.push(share)
    this.#used += amount
    this.#pace.took(now, share.gapMs)
    return share
  }

  /** The request used less, or more, than was reserved. */
  settle(share: Share, used: number): void {
    const amount = this.#atMost(used)
    const gapMs = this.#gapOf(amount, share.factor)
    this.#pace.giveBack(share.gapMs - gapMs, share.gapMs)
    if (!share.left) this.#used += amount - share.amount
    share.amount = amount
    share.gapMs = gapMs
  }

  /** At most the whole limit: one excessive request must not block the others for longer. */
  #atMost(amount: number): number {
    return Math.min(amount, this.#limit)
  }

  #gapOf(amount: number, factor: number): number {
    const even = (amount * this.#windowMs) / (this.#limit * factor)
    // A server that refuses requests within the limit gets no more bursts.
    return factor < 1 ? even : Math.min(LONGEST_GAP_MS, even)
  }

  #forget(now: number): void {
    for (let share = this.#shares.peek(); share && share.at + this.#windowMs <= now; share = this.#shares.peek()) {
      share.left = true
      this.#used -= share.amount
      this.#shares.shift()
    }
    // Avoids accumulating rounding errors.
    if (this.#shares.length === 0) this.#used = 0
  }
}
