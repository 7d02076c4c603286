import { Deque } from '../../deque.ts'

/** The initial rate per second if the limit is unknown; it doubles every second until the first refusal. */
const FIRST_RATE = 5
/** The minimum rate: one per minute, or this fraction of a known limit. */
const LOWEST_RATE = 1 / 60
const LOWEST_SHARE = 0.01
const HIGHEST_RATE = 10_000
/** The fraction kept after a refusal, of a rate that the server has proven to accept and of an unproven one. */
const KEPT_SHARE = 0.98
const KEPT_SHARE_UNPROVEN = 0.7
/** Fewer requests within a second prove nothing about the rate. */
const PROOF = 5
const PROOF_MS = 1000
/** Refusals within this time count as one. */
const CUT_AT_MOST_EVERY_MS = 2000
/** Growth of the rate per second after a refusal ... */
const GROWTH = 0.005
/**
 * ... which accelerates the longer there is none, because the limit may have been raised. Twice the usual time between
 * refusals.
 */
const CALM_MS = 10_000
const CALM_DOUBLES_MS = 10_000
const FASTEST_GROWTH = Math.LN2

/** A request that was sent: amount 1, or its tokens; 0 if it was refused. */
export interface Granted {
  readonly at: number
  amount: number
}

/**
 * Finds the rate of requests, or tokens, that a server accepts per second: additive increase, multiplicative decrease.
 * It is also used below a known limit, because others may use the same key.
 */
export class AdaptiveRate {
  readonly #isKnown: boolean
  readonly #ceiling: number
  readonly #lowest: number
  readonly #granted = new Deque<Granted>()
  #rate: number
  #refused = false
  #cutAt = Number.NEGATIVE_INFINITY
  /** When requests were last delayed by this rate, and since when without interruption. */
  #heldBackAt = Number.NEGATIVE_INFINITY
  #heldBackSince = Number.NEGATIVE_INFINITY
  #calmMs = 0

  constructor(ceiling: number | undefined, first = FIRST_RATE) {
    this.#isKnown = ceiling !== undefined
    this.#ceiling = ceiling ?? HIGHEST_RATE
    this.#lowest = ceiling === undefined ? LOWEST_RATE : ceiling * LOWEST_SHARE
    this.#rate = ceiling ?? first
    // A known limit needs no exponential start.
    this.#refused = this.#isKnown
  }

  get perSecond(): number {
    return this.#rate
  }

  /** Whether the server has determined the rate. */
  get isLearned(): boolean {
    return this.#refused
  }

  get shareOfCeiling(): number {
    return this.#rate / this.#ceiling
  }

  heldBackLately(now: number): boolean {
    return now - this.#heldBackAt < PROOF_MS
  }

  granted(now: number, amount: number): Granted {
    while (this.#granted.length > 0 && this.#granted.peek()!.at <= now - PROOF_MS) this.#granted.shift()
    const granted = { at: now, amount }
    this.#granted.push(granted)
    return granted
  }

  /** Requests were delayed only by this rate for this long, so it may grow. */
  heldBack(ms: number, now: number): void {
    if (now - ms - this.#heldBackAt > PROOF_MS) this.#heldBackSince = now - ms
    this.#heldBackAt = now
    if (this.#rate >= this.#ceiling) return
    // A slow rate is updated rarely, and must not jump.
    const seconds = Math.min(ms, PROOF_MS) / 1000
    const growth = this.#refused
      ? GROWTH * 2 ** (Math.max(0, this.#calmMs - CALM_MS) / CALM_DOUBLES_MS)
      : FASTEST_GROWTH
    this.#calmMs += ms
    this.#rate = Math.min(this.#ceiling, this.#rate * Math.exp(Math.min(growth, FASTEST_GROWTH) * seconds))
  }

  refused({ at }: Granted, now: number): void {
    // It was sent at the previous rate.
    if (at <= this.#cutAt || now - this.#cutAt < CUT_AT_MOST_EVERY_MS) return
    const rate = this.#isStray(now) ? this.#rate * KEPT_SHARE : this.#rateAfterRefusal(now)
    this.#rate = Math.max(this.#lowest, rate)
    this.#refused = true
    this.#cutAt = now
    this.#calmMs = 0
  }

  /**
   * One refusal does not disprove a known limit, because requests may have bunched up on their way. A second one does.
   */
  #isStray(now: number): boolean {
    return this.#isKnown && now - this.#cutAt > CALM_MS
  }

  #rateAfterRefusal(now: number): number {
    // If demand was below the rate, the accepted requests say nothing about the limit.
    const since = Math.max(now - PROOF_MS, this.#heldBackSince)
    const accepted = this.#acceptedSince(since)
    const proven = this.heldBackLately(now) && accepted.count >= PROOF
    const perSecond = (accepted.amount * 1000) / (now - since)
    return proven ? Math.min(this.#rate, perSecond) * KEPT_SHARE : this.#rate * KEPT_SHARE_UNPROVEN
  }

  /** By send time, because refusals come immediately, but answers may take a minute. */
  #acceptedSince(time: number): { count: number; amount: number } {
    let count = 0
    let sum = 0
    for (const { at, amount } of this.#granted)
      if (at > time && amount > 0) {
        count++
        sum += amount
      }
    return { count, amount: sum }
  }
}
