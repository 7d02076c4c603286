import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { PermitOutcome } from '../../src/models/driver/limiter.ts'

/**
 * One of the processes: so many calls, 32 at a time. It asks its parent for a permit before each try, or before each call, if there is a
 * gate. With `backoff` it waits after a 429 as the server says, and a random time on top that doubles with each try.
 */
export type CallerMessage =
  | { readonly type: 'ready' }
  | {
      readonly type: 'acquire'
      readonly id: number
      readonly call: number
      readonly tokens: number
      readonly first: boolean
    }
  | { readonly type: 'refused'; readonly id: number; readonly retryAfterMs: number }
  | { readonly type: 'settle'; readonly id: number; readonly outcome: PermitOutcome }

export interface CallerSettings {
  readonly url: string
  readonly calls: number
  readonly permits: 'none' | 'per-try' | 'per-call'
  readonly backoff: boolean
  /** Calls cost 50 to 249 tokens, and 250 are reserved. */
  readonly tokens: boolean
}

const AT_ONCE = 32
const BACKOFF_MS = 500
const BACKOFF_MAX_MS = 8000

const { url, calls, permits, backoff, tokens } = JSON.parse(process.argv[2]!) as CallerSettings
const granted = new Map<number, () => void>()
const say = (message: CallerMessage) => process.send!(message)
let ids = 0

async function call(number: number): Promise<void> {
  const cost = tokens ? 50 + Math.floor(Math.random() * 200) : 0
  let id = -1
  for (let tries = 0; ; tries++) {
    if (permits === 'per-try' || (permits === 'per-call' && tries === 0)) id = await permit(number, tries)
    const response = await fetch(url, { method: 'POST', body: JSON.stringify({ cost }) })
    await response.text()
    if (response.ok) {
      if (permits !== 'none') say({ type: 'settle', id, outcome: { kind: 'ok', tokens: cost } })
      return
    }
    const retryAfterMs = Number(response.headers.get('retry-after-ms') ?? 0)
    if (permits === 'per-call') say({ type: 'refused', id, retryAfterMs })
    if (permits === 'per-try') say({ type: 'settle', id, outcome: { kind: 'rate_limit', retryAfterMs } })
    if (backoff) await sleep(retryAfterMs + Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** tries))
  }
}

async function permit(call: number, tries: number): Promise<number> {
  const id = ids++
  await new Promise<void>((go) => {
    granted.set(id, go)
    say({ type: 'acquire', id, call, tokens: tokens ? 250 : 0, first: tries > 0 })
  })
  return id
}

process.on('message', (message: 'start' | number) => {
  if (message !== 'start') {
    granted.get(message)!()
    granted.delete(message)
    return
  }
  const limit = pLimit(AT_ONCE)
  void Promise.all(Array.from({ length: calls }, (_, number) => limit(() => call(number)))).then(() =>
    process.disconnect(),
  )
})
await Promise.all(Array.from({ length: AT_ONCE }, async () => (await fetch(url)).text()))
say({ type: 'ready' })
