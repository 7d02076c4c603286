import { Limiter, type LimiterSettings, type Permit } from '../../src/models/driver/limiter.ts'

/** What calls must pass, in one process for all of them. */
export interface Gate {
  acquire(by: object, tokens: number, first: boolean): Promise<Permit>
}

const { signal } = new AbortController()

export function ours(settings: LimiterSettings): Gate {
  const limiter = new Limiter(settings)
  return { acquire: (by, tokens, first) => limiter.acquire({ by, tokens, first, signal }) }
}

/**
 * The rule of Inspect AI's adaptive connections, ported: calls at the same time double until the first 429, then grow by 5 % for each
 * round of successes; on a 429 they are cut to 80 %, once in 15 seconds.
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
    atOnce = Math.min(200, refusedOnce ? atOnce + Math.max(1, Math.round(atOnce * 0.05)) : atOnce * 2)
  }
  const refused = () => {
    successes = 0
    refusedOnce = true
    if (performance.now() < coolUntil) return
    atOnce = Math.max(1, Math.floor(atOnce * 0.8))
    coolUntil = performance.now() + 15_000
  }
  const settle: Permit['settle'] = ({ kind }) => {
    inFlight--
    if (kind === 'ok') succeeded()
    else refused()
    next()
  }
  return {
    acquire: async () => {
      await new Promise<void>((go) => {
        waiting.push(go)
        next()
      })
      return { settle }
    },
  }
}
