import { Deque } from '../../executor/deque.ts'

/** The share of a known limit that is used. The rest is for requests that arrive closer together than they were sent. */
export const USED_SHARE = 0.97
/** Timers fire late; by so much what they delayed may be made up for. */
const CATCH_UP_MS = 10
/** The part of a request's distance that may be given back too late and still be used: more would be a burst. */
const GIVEN_BACK_SHARE = 0.2
/**
 * The longest distance between two requests that only evens them out. A limit of 3 per minute could be 3 at once, a limit of 60
 * per minute may be enforced as 1 per second (OpenAI and Anthropic say so); servers that count in less than a second are unknown.
 */
const LONGEST_GAP_MS = 1000

/** The earliest time of the next request: each is put at a distance from the one before. */
export class Pace {
  #free = Number.NEGATIVE_INFINITY
  /** Of the time until then, what was given back and not used yet. Time in which nobody wanted anything is not kept. */
  #givenBackMs = 0

  get dueAt(): number {
    return this.#free
  }

  took(now: number, gapMs: number): void {
    this.#free = Math.max(this.#free, now - CATCH_UP_MS - this.#givenBackMs) + gapMs
    this.#givenBackMs = Math.max(0, this.#givenBackMs - gapMs)
  }

  /** `gapMs`: what the request was given, of which it needs so much less. */
  giveBack(ms: number, gapMs: number): void {
    this.#free -= ms
    this.#givenBackMs = Math.min(Math.max(0, this.#givenBackMs + ms), gapMs * GIVEN_BACK_SHARE)
  }
}

/** What one request takes of a budget. */
export interface Share {
  readonly at: number
  amount: number
  gapMs: number
  readonly factor: number
  /** It is no longer in the window. */
  left: boolean
}

/**
 * A limit that is known: so much per window, of requests or of tokens. What is taken is spread evenly, and together it is never
 * more than the limit in any window.
 */
export class Budget {
  readonly #limit: number
  /** Longer than the server's own, by what is not used of the limit. */
  readonly #windowMs: number
  readonly #pace = new Pace()
  /** What was taken within the window, the oldest first. */
  readonly #shares = new Deque<Share>()
  #used = 0

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs / USED_SHARE
  }

  /** When so much may be taken, or when to look again. More than the whole limit may be taken if nothing else is in the window. */
  dueAt(amount: number, now: number): number {
    this.#forget(now)
    const oldest = this.#shares.peek()
    if (oldest === undefined) return Number.NEGATIVE_INFINITY
    if (this.#used + amount > this.#limit) return oldest.at + this.#windowMs
    return this.#pace.dueAt
  }

  /** `factor`: the part of the limit that is used; less than 1 once the server has refused what the limit allows. */
  take(wanted: number, now: number, factor: number): Share {
    const amount = this.#atMost(wanted)
    const share: Share = { at: now, amount, gapMs: this.#gapOf(amount, factor), factor, left: false }
    this.#shares.push(share)
    this.#used += amount
    this.#pace.took(now, share.gapMs)
    return share
  }

  /** It took less than was reserved, or more. */
  settle(share: Share, used: number): void {
    const amount = this.#atMost(used)
    const gapMs = this.#gapOf(amount, share.factor)
    this.#pace.giveBack(share.gapMs - gapMs, share.gapMs)
    if (!share.left) this.#used += amount - share.amount
    share.amount = amount
    share.gapMs = gapMs
  }

  /** All that there is: what one request takes beyond that, or is said to take, must not stop the others for longer. */
  #atMost(amount: number): number {
    return Math.min(amount, this.#limit)
  }

  #gapOf(amount: number, factor: number): number {
    const even = (amount * this.#windowMs) / (this.#limit * factor)
    // A server that refuses what the limit allows gets no more bursts.
    return factor < 1 ? even : Math.min(LONGEST_GAP_MS, even)
  }

  #forget(now: number): void {
    for (let share = this.#shares.peek(); share && share.at + this.#windowMs <= now; share = this.#shares.peek()) {
      share.left = true
      this.#used -= share.amount
      this.#shares.shift()
    }
    // Differences of fractions would add up.
    if (this.#shares.length === 0) this.#used = 0
  }
}
