import type { Permit } from '../../src/models/driver/limiter.ts'

/** What calls must pass, in one process for all of them. */
export interface Gate {
  /** Whether a call keeps its permit while it waits and tries again; else it gets a new one for each try. */
  readonly perCall: boolean
  acquire(by: object, tokens: number, first: boolean): Promise<Held>
}

export interface Held extends Permit {
  /** A try was refused, and the call keeps its permit. */
  refused?(retryAfterMs: number): void
}

/**
 * The rule of Inspect AI's adaptive connections (`AdaptiveConcurrencyController`), ported: so many calls at the same time, each with its
 * retries. They double with each round of successes until the first 429, then grow by 5 % a round; on a 429 they are cut to 80 %, once in
 * 15 seconds or what `Retry-After` says, if that is longer. Calls that had to be tried again are no successes.
 */
export function inspectRule(): Gate {
  const waiting: (() => void)[] = []
  let atOnce = 20
  let inFlight = 0
  let successes = 0
  let refusedOnce = false
  let coolUntil = 0
  const next = () => {
    while (inFlight < atOnce && waiting.length > 0) {
      inFlight++
      waiting.shift()!()
    }
  }
  const succeeded = () => {
    if (performance.now() < coolUntil || ++successes < Math.max(atOnce, 4)) return
    successes = 0
    const more = refusedOnce ? rounded(atOnce + Math.max(1, Math.round(atOnce * 0.05)), Math.ceil) : atOnce * 2
    atOnce = Math.min(200, more)
  }
  const refused = (retryAfterMs: number) => {
    successes = 0
    refusedOnce = true
    if (performance.now() < coolUntil) return
    atOnce = Math.max(1, rounded(Math.floor(atOnce * 0.8), Math.floor))
    coolUntil = performance.now() + Math.max(15_000, retryAfterMs)
  }
  return {
    perCall: true,
    acquire: async () => {
      await new Promise<void>((go) => {
        waiting.push(go)
        next()
      })
      let tried = false
      return {
        refused: (retryAfterMs) => {
          tried = true
          refused(retryAfterMs)
        },
        settle: () => {
          inFlight--
          if (!tried) succeeded()
          next()
        },
      }
    },
  }
}

/** To a multiple of 5, from 10 on. */
const rounded = (value: number, to: (value: number) => number) => (value < 10 ? value : to(value / 5) * 5)
