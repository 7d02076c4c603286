import { ManyworldsError } from '../../errors.ts'
import { withoutSlash } from '../address.ts'
import { Replicas } from '../replicas.ts'
import type { ModelSettings } from '../settings.ts'
import { Limiter, type LimiterSettings } from './limiter.ts'

/**
 * The initial rate for a server without a key, which is most likely the user's own: it is limited by its speed, not by
 * a quota.
 */
const FIRST_WITHOUT_KEY = 20

/**
 * A server with one model and one key, shared by all model names and runs of this process that use it. A separate
 * limiter per run or name would exceed the limit.
 */
export class ModelServer {
  readonly limiter: Limiter
  readonly limits: LimiterSettings
  readonly replicas: Replicas

  constructor({ baseURL, replicas = [] }: ModelSettings, key: string | undefined, limits: LimiterSettings) {
    this.limits = limits
    this.limiter = new Limiter(key === undefined ? { ...limits, firstPerSecond: FIRST_WITHOUT_KEY } : limits)
    this.replicas = new Replicas([baseURL, ...replicas].map(withoutSlash))
  }
}

interface UsedServer {
  readonly server: ModelServer
  users: number
}

const servers = new Map<string, UsedServer>()
/** Idle servers are kept, with the rate that their limiters have learned. */
const MAX_IDLE = 100

/** The server of these settings, until `release`. Throws if another active run uses it with different limits. */
export function useServer(
  name: string,
  settings: ModelSettings,
  key: string | undefined,
): { server: ModelServer; release(): void } {
  const limits = limitsOf(settings)
  const identity = identityOf(settings, key)
  let known = servers.get(identity)
  if (known && !sameLimits(known.server.limits, limits)) {
    if (known.users > 0)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`models.${name}\` has different limits (${shown(limits)}) than an active run has for the same server, model and key (${shown(known.server.limits)}); use the same limits for both`,
      )
    known = undefined
  }
  known ??= { server: new ModelServer(settings, key, limits), users: 0 }
  known.users++
  servers.delete(identity)
  servers.set(identity, known)
  forgetIdle()
  const used = known
  let released = false
  const release = () => {
    if (!released) used.users--
    released = true
  }
  return { server: used.server, release }
}

function forgetIdle(): void {
  for (const [identity, { users }] of servers) {
    if (servers.size <= MAX_IDLE) return
    if (users === 0) servers.delete(identity)
  }
}

export function limitsOf({ requestsPerMinute, tokensPerMinute, maxConcurrent }: ModelSettings): LimiterSettings {
  return {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(tokensPerMinute !== undefined && { tokensPerMinute }),
    ...(maxConcurrent !== undefined && { maxConcurrent }),
  }
}

export const identityOf = ({ baseURL, model, replicas = [] }: ModelSettings, key: string | undefined): string =>
  JSON.stringify([withoutSlash(baseURL), key ?? null, model, replicas.map(withoutSlash)])

export const sameLimits = (a: LimiterSettings, b: LimiterSettings): boolean => shown(a) === shown(b)

const shown = (limits: LimiterSettings) =>
  Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ') || 'none'
