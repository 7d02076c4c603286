import { ManyworldsError } from '../../errors.ts'
import { RecentRate } from '../../progress/recent-rate.ts'
import { AdaptiveRate, type Granted } from './adaptive-rate.ts'
import { Budget, Pace, type Share } from './budget.ts'
import { FairQueue } from './fair-queue.ts'
import { Pauses } from './pauses.ts'
import { realTime, type Time } from './time.ts'

const MINUTE_MS = 60_000
const DEFAULT_WAIT_MS = 600_000
/** The maximum concurrent requests if not configured: only a safeguard, because the rate is the actual limit. */
const MAX_CONCURRENT_UNKNOWN = 256
const MAX_CONCURRENT_KNOWN = 1000

export interface LimiterSettings {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  readonly maxConcurrent?: number
  /** The time window of the server's limit. Default: one minute. */
  readonly windowMs?: number
  /** The initial rate if the limit is unknown. Default 5. */
  readonly firstPerSecond?: number
}

export interface PermitRequest {
  /** The task: tasks with waiting requests take turns. */
  readonly by: object
  /** The maximum number of tokens of the call; 0 if unknown. */
  readonly tokens: number
  readonly signal: AbortSignal
  /** The maximum waiting time. Default: 10 minutes. */
  readonly waitMs?: number
  /** As `performance.now()`. */
  readonly notBefore?: number
  /** Whether it goes ahead of the task's other requests, as retries do. */
  readonly first?: boolean
}

export interface PermitOutcome {
  readonly kind: 'ok' | 'rate_limit' | 'failed'
  /** The tokens used. Default: those reserved; none if the server refused the call. */
  readonly tokens?: number
  readonly retryAfterMs?: number
  /** The call failed for a reason that all calls of the model may share. */
  readonly shared?: SharedFailure
}

export interface SharedFailure {
  readonly kind: 'refused' | 'unreachable'
  readonly status?: number
  /** For the user: what happened, and what to do. */
  readonly why: string
}

export interface Permit {
  /** Must be called when the call has ended; later calls do nothing. */
  settle(outcome: PermitOutcome): void
}

export interface LimiterState {
  readonly queued: number
  readonly inFlight: number
  /** The recent rate. */
  readonly ratePerSecond: number
  /** The current maximum rate of requests. Undefined if no limit is known. */
  readonly limitPerSecond: number | undefined
  /** For how many more milliseconds nothing is sent, because the server asked for a pause. */
  readonly paused: number
}

/**
 * How long calls that need fewer tokens may pass one that waits for tokens, so that it does not hold up the others. After that, it
 * is next.
 */
const PASSED_MS = 10_000
/** How many waiting calls are looked at for one that fits. */
const MAX_LOOKED_AT = 64

interface Waiter {
  readonly by: object
  readonly first: boolean
  readonly tokens: number
  readonly grant: (permit: Permit) => void
  /** Cancels its timers and removes its abort listener. */
  readonly end: () => void
  /** Since when it is the first and waits only for tokens. */
  blockedSince?: number
}

/** What a call uses of each limit. */
interface Taken {
  readonly sent: Granted
  readonly request: Share | undefined
  readonly sentTokens: Granted | undefined
  readonly tokens: Share | undefined
}

/**
 * Sends requests as fast as a server accepts them, and no faster. There is one per limit, in the driver, for all
 * workers. It paces requests at 97 % of a known limit, or finds the rate that the server accepts (`AdaptiveRate`). It
 * has a timer only while requests wait.
 */
export class Limiter {
  readonly #time: Time
  readonly #maxConcurrent: number
  readonly #perSecond: number | undefined
  readonly #requests: Budget | undefined
  readonly #tokens: Budget | undefined
  readonly #rate: AdaptiveRate
  readonly #tokenRate: AdaptiveRate | undefined
  readonly #pace = new Pace()
  readonly #pauses = new Pauses()
  readonly #queue = new FairQueue<Waiter>()
  readonly #recent: RecentRate
  /** Requests waiting for their `notBefore`. */
  #early = 0
  #inFlight = 0
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  /** What delays requests, and since when. */
  #heldBack: { readonly by: AdaptiveRate; readonly since: number } | undefined

  constructor(settings: LimiterSettings, time: Time = realTime) {
    checkSettings(settings)
    const { requestsPerMinute: requests, tokensPerMinute: tokens, maxConcurrent, windowMs = MINUTE_MS } = settings
    const windows = windowMs / MINUTE_MS
    this.#time = time
    this.#recent = new RecentRate(time.now())
    this.#perSecond = requests && requests / 60
    this.#rate = new AdaptiveRate(this.#perSecond, settings.firstPerSecond)
    // At least one: a fraction per window is one per several windows.
    if (requests) this.#requests = new Budget(Math.max(1, requests * windows), Math.max(windowMs, MINUTE_MS / requests))
    if (tokens) {
      this.#tokens = new Budget(tokens * windows, windowMs)
      this.#tokenRate = new AdaptiveRate(tokens / 60)
    }
    this.#maxConcurrent = maxConcurrent ?? (requests ? MAX_CONCURRENT_KNOWN : MAX_CONCURRENT_UNKNOWN)
  }

  /** The caller must settle the permit, even if its signal was aborted meanwhile. */
  acquire({ by, tokens, signal, waitMs = DEFAULT_WAIT_MS, notBefore, first = false }: PermitRequest): Promise<Permit> {
    return new Promise((grant, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const earlyMs = notBefore === undefined ? 0 : notBefore - this.#time.now()
      let cancelEarly: (() => void) | undefined
      const end = () => {
        cancelLate()
        cancelEarly?.()
        signal.removeEventListener('abort', abort)
      }
      const waiter: Waiter = { by, first, tokens: amountOf(tokens) ?? 0, grant, end }
      const leave = (why: unknown) => {
        if (cancelEarly) this.#early--
        this.#queue.remove(waiter)
        end()
        reject(why)
        this.#grantDue()
      }
      const abort = () => leave(signal.reason)
      const cancelLate = this.#time.setTimeout(() => leave(tooLate(waitMs, this.state)), waitMs)
      signal.addEventListener('abort', abort, { once: true })
      if (earlyMs <= 0) return this.#enqueue(waiter)
      this.#early++
      cancelEarly = this.#time.setTimeout(() => {
        cancelEarly = undefined
        this.#early--
        this.#enqueue(waiter)
      }, earlyMs)
    })
  }

  get state(): LimiterState {
    const now = this.#time.now()
    const learned = this.#rate.isLearned && this.#rate.perSecond < (this.#perSecond ?? Number.POSITIVE_INFINITY)
    return {
      queued: this.#queue.size + this.#early,
      inFlight: this.#inFlight,
      ratePerSecond: this.#recent.perSecond(now) ?? 0,
      limitPerSecond: learned ? this.#rate.perSecond : this.#perSecond,
      paused: Math.max(0, this.#pauses.until - now),
    }
  }

  #enqueue(waiter: Waiter): void {
    this.#queue.add(waiter)
    this.#grantDue()
  }

  /** Grants permits that are due, and schedules the next check. */
  #grantDue(): void {
    const now = this.#time.now()
    if (this.#heldBack !== undefined) {
      const { by, since } = this.#heldBack
      by.heldBack(now - since, now)
      this.#heldBack = undefined
    }
    for (let next = this.#queue.peek(); next !== undefined; next = this.#queue.peek()) {
      if (this.#inFlight >= this.#maxConcurrent) break
      const byRate = this.#requests?.dueAt(1, now) ?? this.#pace.dueAt
      const byTokens = next.tokens > 0 ? (this.#tokens?.dueAt(next.tokens, now) ?? 0) : 0
      const due = Math.max(byRate, byTokens, this.#pauses.until)
      if (due > now) {
        const other = byTokens > now ? this.#mayPass(next, byTokens, now) : undefined
        const soonest = other ? Math.max(byRate, other.due, this.#pauses.until) : due
        if (other && soonest <= now) {
          this.#queue.remove(other.waiter)
          this.#grant(other.waiter, now)
          continue
        }
        if (soonest === byRate) this.#heldBack = { by: this.#rate, since: now }
        else if (soonest !== this.#pauses.until) this.#heldBack = { by: this.#tokenRate!, since: now }
        return this.#scheduleCheck(soonest, now)
      }
      this.#grant(this.#queue.take()!, now)
    }
    // Nothing waits, or the end of a call triggers the next check.
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** The call that may go before the first one, which waits for tokens until `due`; undefined if there is none. */
  #mayPass(first: Waiter, due: number, now: number): { waiter: Waiter; due: number } | undefined {
    first.blockedSince ??= now
    if (now - first.blockedSince >= PASSED_MS) return undefined
    for (const waiter of this.#queue.others(MAX_LOOKED_AT)) {
      const otherDue = waiter.tokens > 0 ? this.#tokens!.dueAt(waiter.tokens, now) : 0
      if (waiter.tokens < first.tokens && otherDue < due) return { waiter, due: otherDue }
    }
    return undefined
  }

  #scheduleCheck(due: number, now: number): void {
    if (this.#timer?.at === due) return
    this.#timer?.cancel()
    const cancel = this.#time.setTimeout(() => {
      this.#timer = undefined
      this.#grantDue()
    }, due - now)
    this.#timer = { at: due, cancel }
  }

  #grant({ tokens, grant, end }: Waiter, now: number): void {
    end()
    this.#inFlight++
    this.#recent.add()
    if (!this.#requests) this.#pace.took(now, 1000 / this.#rate.perSecond)
    const taken: Taken = {
      sent: this.#rate.granted(now, 1),
      request: this.#requests?.take(1, now, this.#rate.shareOfCeiling),
      sentTokens: this.#tokenRate?.granted(now, tokens),
      tokens: tokens > 0 ? this.#tokens?.take(tokens, now, this.#tokenRate!.shareOfCeiling) : undefined,
    }
    let settled = false
    grant({
      settle: (outcome) => {
        if (settled) return
        settled = true
        this.#settle(outcome, taken)
      },
    })
  }

  #settle({ kind, tokens, retryAfterMs }: PermitOutcome, taken: Taken): void {
    const now = this.#time.now()
    this.#inFlight--
    if (kind === 'ok') this.#pauses.answered()
    const used = amountOf(tokens) ?? (kind === 'rate_limit' ? 0 : undefined)
    if (used !== undefined) this.#used(used, taken, now)
    if (kind === 'rate_limit') this.#refused(taken, now, amountOf(retryAfterMs))
    this.#grantDue()
  }

  #used(used: number, taken: Taken, now: number): void {
    if (taken.sentTokens) taken.sentTokens.amount = used
    if (taken.tokens) this.#tokens!.settle(taken.tokens, used)
    // The tokens were unknown, so none were reserved.
    else if (used > 0) this.#tokens?.take(used, now, this.#tokenRate!.shareOfCeiling)
  }

  #refused(taken: Taken, now: number, retryAfterMs: number | undefined): void {
    this.#pauses.refused(taken.sent.at, now, retryAfterMs, this.#rate.perSecond)
    if (taken.request) this.#requests!.settle(taken.request, 0)
    taken.sent.amount = 0
    // Servers do not report which limit was exceeded. Assume the one that requests were waiting for.
    if (this.#tokenRate?.heldBackLately(now)) this.#tokenRate.refused(taken.sentTokens!, now)
    else this.#rate.refused(taken.sent, now)
  }
}

/** Servers may report anything. */
const amountOf = (value: number | undefined) =>
  value !== undefined && Number.isFinite(value) && value >= 0 ? value : undefined

function checkSettings(settings: LimiterSettings): void {
  for (const [name, value] of Object.entries(settings))
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw new RangeError(`${name} must be a number above 0, not ${String(value)}`)
}

/** Describes the state of the queue, for timeout errors. */
export function describeWait({ queued, inFlight, ratePerSecond, limitPerSecond, paused }: LimiterState): string {
  const limit = limitPerSecond === undefined ? '' : ` (limit ${perTime(limitPerSecond)})`
  const pause = paused > 0 ? `; the server asked for a pause, which lasts another ${Math.ceil(paused / 1000)} s` : ''
  return `${queued} waiting, ${inFlight} in flight, recent rate ${perTime(ratePerSecond)}${limit}${pause}`
}

function perTime(perSecond: number): string {
  const [value, unit] = perSecond > 0 && perSecond < 1 ? [perSecond * 60, 'minute'] : [perSecond, 'second']
  return `${Number(value.toPrecision(3))} per ${unit}`
}

const tooLate = (waitMs: number, state: LimiterState) =>
  new ManyworldsError(
    'MODEL_PERMIT_TIMEOUT',
    `no permit for a call within ${waitMs} ms: ${describeWait(state)}; lower \`concurrency\` or \`workerNum\`, raise the model's limit if the provider allows more, or increase \`permitTimeoutMs\``,
  )
