import { Limiter, type LimiterSettings } from '../../src/models/driver/limiter.ts'
import type { Time } from '../../src/models/driver/time.ts'
import { seeded } from '../../src/random.ts'

interface Event {
  readonly at: number
  readonly number: number
  readonly run: () => void
}

/** Time that passes only when `run` says so: an hour takes as long as what happens in it. */
export class VirtualTime implements Time {
  #events: Event[] = []
  #now = 0
  #number = 0
  /** Timers that were neither cancelled nor have fired. */
  readonly pending = new Set<Event>()

  now(): number {
    return this.#now
  }

  setTimeout(run: () => void, ms: number): () => void {
    const event = { at: this.#now + Math.max(0, ms), number: this.#number++, run }
    this.pending.add(event)
    this.#insert(event)
    return () => void this.pending.delete(event)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.setTimeout(resolve, ms))
  }

  /** Until there is nothing left to happen, or this time has come. */
  async run(until = Number.POSITIVE_INFINITY): Promise<void> {
    await settled()
    for (let event = this.#events[0]; event !== undefined && event.at <= until; event = this.#events[0]) {
      this.#removeFirst()
      if (!this.pending.delete(event)) continue
      this.#now = event.at
      event.run()
      await settled()
    }
    if (Number.isFinite(until)) this.#now = until
  }

  // A binary heap by time, then by order.
  #insert(event: Event): void {
    const events = this.#events
    let at = events.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!before(events[at]!, events[parent]!)) break
      ;[events[at], events[parent]] = [events[parent]!, events[at]!]
      at = parent
    }
  }

  #removeFirst(): void {
    const events = this.#events
    const last = events.pop()!
    if (events.length === 0) return
    events[0] = last
    for (let at = 0; ; ) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < events.length && before(events[child]!, events[least]!)) least = child
      if (least === at) return
      ;[events[at], events[least]] = [events[least]!, events[at]!]
      at = least
    }
  }
}

const before = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.number < b.number)

/** All that follows at once has happened: promises that resolve promises, a few deep. */
async function settled(): Promise<void> {
  for (let i = 0; i < 8; i++) await null
}

export interface Scenario {
  readonly seed: number
  readonly limiter: LimiterSettings
  /** What the server takes per window, at this time. */
  readonly requests?: (at: number) => number
  readonly tokens?: number
  readonly windowMs?: number
  readonly calls?: number
  readonly tasks?: number
  /** Requests take up to so long to the server. */
  readonly jitterMs?: number
  readonly latencyMs?: readonly [least: number, most: number]
  /** The server says when to try again. */
  readonly saysWhen?: boolean
}

/** Tasks that call a server with a sliding window, one call after the other, through one limiter. */
export async function simulate({
  seed,
  limiter: settings,
  requests = () => 40,
  tokens: tokenLimit = Number.POSITIVE_INFINITY,
  windowMs = 1000,
  calls = 2000,
  tasks = 128,
  jitterMs = 5,
  latencyMs: [least, most] = [50, 150],
  saysWhen = true,
}: Scenario) {
  const time = new VirtualTime()
  const random = seeded(seed)
  const limiter = new Limiter(settings, time)
  const { signal } = new AbortController()
  const window: { at: number; tokens: number }[] = []
  const log: { at: number; ok: boolean; tokens: number }[] = []
  let windowTokens = 0
  let left = calls

  const serve = (tokens: number): number | undefined => {
    const now = time.now()
    while (window.length > 0 && window[0]!.at <= now - windowMs) windowTokens -= window.shift()!.tokens
    const ok = window.length < requests(now) && windowTokens + tokens <= tokenLimit
    log.push({ at: now, ok, tokens: ok ? tokens : 0 })
    if (!ok) return windowMs - (now - window[0]!.at)
    window.push({ at: now, tokens })
    windowTokens += tokens
    return undefined
  }
  const task = async (by: object) => {
    while (left-- > 0) {
      const tokens = Number.isFinite(tokenLimit) ? 50 + Math.floor(random() * 200) : 0
      for (let first = false; ; first = true) {
        const permit = await limiter.acquire({ by, tokens: tokens && 250, signal, waitMs: 1e9, first })
        await time.sleep(random() * jitterMs)
        const waitMs = serve(tokens)
        await time.sleep(waitMs === undefined ? least + random() * (most - least) : 2)
        if (waitMs === undefined) {
          permit.settle({ kind: 'ok', tokens })
          break
        }
        permit.settle({ kind: 'rate_limit', ...(saysWhen && { retryAfterMs: waitMs }) })
      }
    }
  }
  const all = Promise.all(Array.from({ length: tasks }, () => task({})))
  await time.run()
  await all

  /** What part of the limit was used, and what part of the requests refused. */
  const between = (from: number, to = log.at(-1)!.at) => {
    const inside = log.filter(({ at }) => at >= from && at <= to)
    const accepted = inside.filter(({ ok }) => ok)
    let possible = 0
    for (let at = from; at < to; at += 100) possible += (requests(at) * Math.min(100, to - at)) / windowMs
    const usedTokens = accepted.reduce((sum, { tokens }) => sum + tokens, 0)
    return {
      use: accepted.length / possible,
      tokenUse: usedTokens / ((tokenLimit * (to - from)) / windowMs),
      refused: 1 - accepted.length / inside.length,
    }
  }
  return { ...between(0), between, tookMs: time.now(), limiter, accepted: log.filter(({ ok }) => ok).length }
}
