import { ManyworldsError } from '../../errors.ts'
import { didYouMean } from '../../near-miss.ts'
import type { ModelQueue } from '../../progress/run-progress.ts'
import { type GivenModel, isLanguageModel } from '../language-model.ts'
import { secretHeaders } from '../secrets.ts'
import {
  DEFAULT_PERMIT_MS,
  DEFAULT_RETRIES,
  DEFAULT_TIMEOUT_MS,
  type ModelDescription,
  type ModelDescriptions,
  type ModelSettings,
  type ModelsConfig,
} from '../settings.ts'
import type { CacheMode } from './cache.ts'
import { Limiter } from './limiter.ts'
import { identityOf, limitsOf, type ModelServer, sameLimits, useServer, withoutSlash } from './model-server.ts'

/** A model of a run that is behind a server. */
export interface ServedModel {
  readonly kind: 'server'
  readonly name: string
  readonly settings: ModelSettings
  readonly key: string | undefined
  readonly server: ModelServer
  readonly via: 'driver' | 'direct'
  readonly use: UseSoFar
}

/** One that is an object of the user's. */
export interface ObjectModel {
  readonly kind: 'object'
  readonly name: string
  readonly object: GivenModel
  readonly limiter: Limiter
  readonly use: UseSoFar
}

/** How the calls of the run came out so far. */
export interface UseSoFar {
  calls: number
  tokens: number
  rateLimited: number
  failed: number
}

const noUse = (): UseSoFar => ({ calls: 0, tokens: 0, rateLimited: 0, failed: 0 })

export type RunModel = ServedModel | ObjectModel

/** Where workers are: a server on this machine cannot be called from another. */
export interface WorkersPlace {
  readonly onThisMachine: boolean
}

export interface ModelsMode extends WorkersPlace {
  readonly cache: CacheMode
}

/** The models of one run. */
export class RunModels {
  readonly #models = new Map<string, RunModel>()
  readonly #unusable: Readonly<Record<string, string>>
  readonly #releases: (() => void)[] = []

  /** `unusable`: why further models cannot be called. */
  constructor(config: ModelsConfig, place: ModelsMode, unusable: Readonly<Record<string, string>> = {}) {
    this.#unusable = unusable
    try {
      for (const [name, given] of Object.entries(config)) this.#models.set(name, this.#open(name, given, place))
    } catch (error) {
      this.close()
      throw error
    }
  }

  get(name: string): RunModel {
    const model = this.#models.get(name)
    if (model) return model
    const names = [...this.#models.keys()]
    throw new ManyworldsError(
      'MODEL_UNKNOWN',
      `there is no model '${name}'${didYouMean(name, names)}; the run has ${names.join(', ') || 'none'}. Add it to \`models\` in the run configuration, or to models.json`,
    )
  }

  /** What workers are told. */
  describe(): ModelDescriptions {
    return Object.fromEntries([
      ...[...this.#models].map(([name, model]) => [name, descriptionOf(model)] as const),
      ...Object.entries(this.#unusable).map(([name, why]) => [name, { kind: 'unusable', why }] as const),
    ])
  }

  /** How many calls wait for each, and how fast it goes; of those for which some wait. */
  get waiting(): ModelQueue[] {
    const seen = new Set<Limiter>()
    const found: ModelQueue[] = []
    for (const model of this.#models.values()) {
      const limiter = limiterOf(model)
      const { queued, ratePerSecond } = limiter.state
      const { calls, failed } = model.use
      const failing = calls === 0 && failed > 0 ? { failed } : {}
      if (queued > 0 && !seen.has(limiter))
        found.push({ model: model.name, queued, perSecond: ratePerSecond, ...failing })
      seen.add(limiter)
    }
    return found
  }

  /** What was asked of each, of those that were called. */
  get used(): ({ readonly model: string } & Readonly<UseSoFar>)[] {
    return [...this.#models.values()].flatMap(({ name, use }) =>
      use.calls + use.rateLimited + use.failed === 0 ? [] : [{ model: name, ...use }],
    )
  }

  close(): void {
    for (const release of this.#releases.splice(0)) release()
  }

  #open(name: string, given: ModelSettings | GivenModel, place: ModelsMode): RunModel {
    if (isLanguageModel(given)) return { kind: 'object', name, object: given, limiter: new Limiter({}), use: noUse() }
    const key = place.cache === 'replay' ? undefined : keyOf(name, given)
    this.#checkLimits(name, given, key)
    const { server, release } = useServer(name, given, key)
    this.#releases.push(release)
    return { kind: 'server', name, settings: given, key, server, via: wayOf(given, place), use: noUse() }
  }

  /** Names that mean the same model share its limiter, so they cannot have different limits. */
  #checkLimits(name: string, settings: ModelSettings, key: string | undefined): void {
    const identity = identityOf(settings, key)
    for (const other of this.#models.values()) {
      if (other.kind === 'object' || identityOf(other.settings, other.key) !== identity) continue
      if (sameLimits(limitsOf(settings), limitsOf(other.settings))) continue
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`models.${name}\` and \`models.${other.name}\` mean the same model at the same server with the same key, and have different limits; give both the same, also if one of them is in models.json`,
      )
    }
  }
}

export const limiterOf = (model: RunModel): Limiter => (model.kind === 'object' ? model.limiter : model.server.limiter)

function keyOf(name: string, { apiKeyEnv }: ModelSettings): string | undefined {
  if (apiKeyEnv === undefined) return undefined
  const key = process.env[apiKeyEnv]
  if (key !== undefined && key.trim() !== '') return key.trim()
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`models.${name}\`: the variable ${apiKeyEnv} is ${key === undefined ? 'not set' : 'empty'}; set it, or name another one in \`apiKeyEnv\``,
  )
}

/** A cache is the driver's, so all calls pass there. */
const wayOf = (given: ModelSettings, mode: ModelsMode): 'driver' | 'direct' =>
  mode.cache === false ? (given.via ?? usualWay(given, mode)) : 'driver'

/** Without a key there is nothing that workers must not have. A loopback address is another server on another machine. */
function usualWay(
  { apiKeyEnv, baseURL, headers }: ModelSettings,
  { onThisMachine }: WorkersPlace,
): 'driver' | 'direct' {
  if (apiKeyEnv !== undefined || secretHeaders({ ...(headers && { headers }) }).length > 0) return 'driver'
  return onThisMachine || !isLoopback(new URL(baseURL).hostname) ? 'direct' : 'driver'
}

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || /^127\./.test(host)

/** What is sent along with a call. */
export function headersOf({ settings: { headers = {} }, key }: ServedModel): Record<string, string> {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...lower }
}

export const timesOf = (settings: ModelSettings) => ({
  timeoutMs: settings.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  permitMs: settings.permitTimeoutMs ?? DEFAULT_PERMIT_MS,
  maxRetries: settings.maxRetries ?? DEFAULT_RETRIES,
})

export const permitMsOf = (model: RunModel): number =>
  model.kind === 'object' ? DEFAULT_PERMIT_MS : timesOf(model.settings).permitMs

/** The longest that one try may take. */
export const callMsOf = (model: RunModel): number =>
  model.kind === 'object' ? DEFAULT_TIMEOUT_MS : timesOf(model.settings).timeoutMs

function descriptionOf(model: RunModel): ModelDescription {
  if (model.kind === 'object')
    return {
      ...{ kind: 'object', model: model.object.modelId, via: 'driver', price: undefined, extraBody: undefined },
      ...{ tokens: false, permitMs: DEFAULT_PERMIT_MS },
    }
  const { settings, via, server } = model
  const { timeoutMs, permitMs, maxRetries } = timesOf(settings)
  const direct = { urls: server.replicas.urls, headers: headersOf(model), timeoutMs, maxRetries }
  return {
    ...{ kind: 'server', model: settings.model, via, price: settings.price, extraBody: settings.extraBody },
    ...{ tokens: settings.tokens ?? false, permitMs },
    ...(via === 'direct' && { direct }),
  }
}

/** Where a model is, without what may be secret: a user, a password, a query. */
export function publicURL(baseURL: string): string {
  const { origin, pathname } = new URL(baseURL)
  return withoutSlash(`${origin}${pathname}`)
}

/** For errors: which model, and where it is. */
export const shownModel = (model: RunModel): { readonly what: string; readonly where: string } => ({
  what: `model '${model.name}'`,
  where:
    model.kind === 'object'
      ? `${model.object.modelId} of ${model.object.provider}`
      : `${model.settings.model} at ${publicURL(model.settings.baseURL)}`,
})
