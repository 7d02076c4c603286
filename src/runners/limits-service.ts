import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import type { Service, ServiceCall } from '../executor/service.ts'
import type { RateLimit } from '../limits.ts'
import { describeWait, Limiter, type LimiterSettings } from '../models/driver/limiter.ts'
import { permitFor } from '../models/driver/permit-for.ts'
import type { LimitAsked, Packed } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { readPacked } from '../protocol/read-packed.ts'

type Limits = Readonly<Record<string, RateLimit>>

const MINUTE_MS = 60_000
const WINDOWS_MS = { perSecond: 1000, perMinute: MINUTE_MS, perHour: 60 * MINUTE_MS } as const
const MAX_NAME_CHARS = 256

/**
 * By name and settings, for all runs of the process. It hangs on globalThis, because one process may hold two copies of this
 * package.
 */
const KEY = Symbol.for('manyworlds.limits')
const holder = globalThis as unknown as Record<symbol, Map<string, Limiter> | undefined>

/** The service of `ctx.limit`: tasks wait here for the limits of their run. */
export function limitsService(limits: Limits = {}): Service {
  const limiters = new Map(Object.entries(limits).map(([name, limit]) => [name, limiterOf(name, limit)]))
  return {
    once: false,
    durable: false,
    atOnce: Number.POSITIVE_INFINITY,
    unlimited: false,
    check(body) {
      if (!isAsked(readPacked(body))) throw new TypeError('a malformed question about a limit')
    },
    ask: (call) => pass(call, limiters),
  }
}

async function pass(call: ServiceCall, limiters: ReadonlyMap<string, Limiter>): Promise<Packed> {
  const [name, waitMs] = readPacked(call.body) as LimitAsked
  const limiter = limiters.get(name)
  if (limiter === undefined) throw unknown(name, [...limiters.keys()])
  try {
    const permit = await permitFor(limiter, call, { tokens: 0, waitMs })
    // Only the rate is limited; what the task does is not looked at.
    permit.settle({ kind: 'ok' })
  } catch (error) {
    if (!ManyworldsError.is(error) || error.code !== 'MODEL_PERMIT_TIMEOUT') throw error
    throw tooLate(name, waitMs, limiter)
  }
  return pack(undefined)
}

function limiterOf(name: string, limit: RateLimit): Limiter {
  const [[unit, often]] = Object.entries(limit) as [[keyof typeof WINDOWS_MS, number]]
  const windowMs = WINDOWS_MS[unit]
  const settings: LimiterSettings = { requestsPerMinute: (often * MINUTE_MS) / windowMs, windowMs }
  const all = (holder[KEY] ??= new Map())
  const key = JSON.stringify([name, unit, often])
  let limiter = all.get(key)
  if (limiter === undefined) all.set(key, (limiter = new Limiter(settings)))
  return limiter
}

function isAsked(asked: unknown): asked is LimitAsked {
  if (!Array.isArray(asked) || asked.length !== 2) return false
  const [name, waitMs] = asked as unknown[]
  return typeof name === 'string' && name.length <= MAX_NAME_CHARS && typeof waitMs === 'number' && waitMs > 0
}

function unknown(name: string, names: readonly string[]): ManyworldsError {
  const there = names.length === 0 ? 'the run has none' : `the run has ${names.join(', ')}`
  const hint = `${didYouMean(name, names)}; ${there}. Add it to \`limits\` in the run configuration`
  return new ManyworldsError('LIMIT_UNKNOWN', `there is no limit '${name}'${hint}`)
}

const tooLate = (name: string, waitMs: number, limiter: Limiter) =>
  new ManyworldsError(
    'REQUEST_TIMEOUT',
    `ctx.limit('${name}'): not allowed within ${waitMs} ms: ${describeWait(limiter.state)}; run fewer tasks at once, raise the limit, or give a larger limitMs`,
  )
