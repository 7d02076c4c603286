import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { ModelQueue } from '../../progress/run-progress.ts'
import { publicURL } from '../address.ts'
import { patienceOf } from '../calling.ts'
import { type GivenModel, isLanguageModel } from '../language-model.ts'
import { noPrice, priceOf } from '../prices.ts'
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
import { Breaker } from './breaker.ts'
import type { CacheMode } from './cache.ts'
import { Limiter } from './limiter.ts'
import { identityOf, limitsOf, type ModelServer, sameLimits, useServer } from './model-server.ts'

/** A model of a run on a server. */
export interface ServedModel {
  readonly kind: 'server'
  readonly name: string
  readonly settings: ModelSettings
  readonly key: string | undefined
  readonly server: ModelServer
  readonly via: 'driver' | 'direct'
  readonly use: ModelUse
  readonly breaker: Breaker
  /** An answer did not report its tokens. */
  readonly uncounted: () => void
}

/** A model of a run that is a provider object. */
export interface ObjectModel {
  readonly kind: 'object'
  readonly name: string
  readonly object: GivenModel
  readonly limiter: Limiter
  readonly use: ModelUse
  readonly breaker: Breaker
  /** An answer did not report its tokens. */
  readonly uncounted: () => void
}

/** The limiters of provider objects, for all runs of this process: they keep the rate that they have learned. */
const objectLimiters = new WeakMap<GivenModel, Limiter>()

function limiterOfObject(object: GivenModel): Limiter {
  let limiter = objectLimiters.get(object)
  if (limiter === undefined) objectLimiters.set(object, (limiter = new Limiter({})))
  return limiter
}

/** Counts of the run's calls so far. */
export interface ModelUse {
  calls: number
  tokens: number
  rateLimited: number
  failed: number
}

const noUse = (): ModelUse => ({ calls: 0, tokens: 0, rateLimited: 0, failed: 0 })

export type RunModel = ServedModel | ObjectModel

/** Where workers are, because another machine cannot reach a server on this machine's loopback. */
export interface WorkersPlace {
  readonly onThisMachine: boolean
}

export interface ModelsMode extends WorkersPlace {
  readonly cache: CacheMode
  /** The run has a `maxCostUsd`, so models without a price cannot be called. Fails the run. */
  readonly unpriced?: ((error: Error) => void) | undefined
  /** The limits of the run that tokens count toward, such as `maxTokens`; undefined if it has none. */
  readonly budget?: string | undefined
}

/** The models of one run. */
export class RunModels {
  readonly #models = new Map<string, RunModel>()
  readonly #unusable: Readonly<Record<string, string>>
  readonly #unpriced: ModelsMode['unpriced']
  readonly #budget: ModelsMode['budget']
  readonly #releases: (() => void)[] = []
  /** Names of the same model on the same server with the same key share one. */
  readonly #breakers = new Map<string | GivenModel, Breaker>()
  /** Prints a line for the user. */
  notice = (_line: string) => {}

  /** `unusable`: why other models cannot be called. */
  constructor(config: ModelsConfig, place: ModelsMode, unusable: Readonly<Record<string, string>> = {}) {
    this.#unusable = unusable
    this.#unpriced = place.unpriced
    this.#budget = place.budget
    try {
      for (const [name, given] of Object.entries(config)) this.#models.set(name, this.#open(name, given, place))
    } catch (error) {
      this.close()
      throw error
    }
  }

  get(name: string): RunModel {
    const model = this.#models.get(name)
    if (model && this.#unpriced) this.#checkPrice(model, this.#unpriced)
    if (model) return model
    const names = [...this.#models.keys()]
    throw new ManyworldsError(
      'MODEL_UNKNOWN',
      `unknown model '${name}'${didYouMean(name, names)}; the run has ${names.join(', ') || 'none'}; add it to \`models\` in the run configuration, or to models.json`,
    )
  }

  /** The descriptions for workers. */
  describe(): ModelDescriptions {
    return Object.fromEntries([
      ...[...this.#models].map(([name, model]) => [name, descriptionOf(model)] as const),
      ...Object.entries(this.#unusable).map(([name, why]) => [name, { kind: 'unusable', why }] as const),
    ])
  }

  /** The queue length and rate of each model with waiting calls. */
  get waiting(): ModelQueue[] {
    const seen = new Set<Limiter>()
    const found: ModelQueue[] = []
    for (const model of this.#models.values()) {
      const limiter = limiterOf(model)
      const { queued, ratePerSecond } = limiter.state
      const { calls, failed, rateLimited } = model.use
      const failing = calls === 0 ? { ...(failed > 0 && { failed }), ...(rateLimited > 0 && { rateLimited }) } : {}
      if (queued > 0 && !seen.has(limiter))
        found.push({ model: model.name, queued, perSecond: ratePerSecond, ...failing })
      seen.add(limiter)
    }
    return found
  }

  /** The usage of each model that was called. */
  get used(): ({ readonly model: string } & Readonly<ModelUse>)[] {
    return [...this.#models.values()].flatMap(({ name, use }) =>
      use.calls + use.rateLimited + use.failed === 0 ? [] : [{ model: name, ...use }],
    )
  }

  /** Most runs with an unpriced model are refused before they start; here, one whose agents did not declare their models. */
  #checkPrice(model: RunModel, fail: (error: Error) => void): void {
    const given = model.kind === 'object' ? model.object : model.settings
    if (priceOf(given)) return
    const error = noPrice(model.name, given, 'the run has `maxCostUsd`')
    fail(error)
    throw error
  }

  close(): void {
    for (const release of this.#releases.splice(0)) release()
    for (const breaker of this.#breakers.values()) breaker.close()
  }

  #open(name: string, given: ModelSettings | GivenModel, place: ModelsMode): RunModel {
    if (isLanguageModel(given)) {
      const breaker = this.#breakerOf(given, name, whereOf(given), DEFAULT_RETRIES)
      const limiter = limiterOfObject(given)
      return { kind: 'object', name, object: given, limiter, use: noUse(), breaker, uncounted: this.#uncounted(name) }
    }
    const key = place.cache === 'replay' ? undefined : keyOf(name, given)
    this.#checkLimits(name, given, key)
    const { server, release } = useServer(name, given, key)
    this.#releases.push(release)
    const breaker = this.#breakerOf(identityOf(given, key), name, whereOf(given), timesOf(given).maxRetries)
    const own = { via: routeOf(given, place), use: noUse(), breaker, uncounted: this.#uncounted(name) }
    return { kind: 'server', name, settings: given, key, server, ...own }
  }

  /** Says once that the budget of the run cannot be enforced. */
  #uncounted(name: string): () => void {
    let isSaid = this.#budget === undefined
    return () => {
      if (!isSaid)
        this.notice(
          `model '${name}' reports no tokens (\`usage\`), so its calls do not count toward ${this.#budget}: the budget cannot be enforced`,
        )
      isSaid = true
    }
  }

  #breakerOf(identity: string | GivenModel, name: string, where: string, maxRetries: number): Breaker {
    let breaker = this.#breakers.get(identity)
    if (breaker === undefined) {
      const opened = ({ message }: Error) => this.notice(message)
      breaker = new Breaker({ what: `model '${name}'`, where, patienceMs: patienceOf(maxRetries), opened })
      this.#breakers.set(identity, breaker)
    }
    return breaker
  }

  /** Names of the same model share its limiter, so they cannot have different limits. */
  #checkLimits(name: string, settings: ModelSettings, key: string | undefined): void {
    const identity = identityOf(settings, key)
    for (const other of this.#models.values()) {
      if (other.kind === 'object' || identityOf(other.settings, other.key) !== identity) continue
      if (sameLimits(limitsOf(settings), limitsOf(other.settings))) continue
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`models.${name}\` and \`models.${other.name}\` are the same model on the same server with the same key, but have different limits; use the same limits for both (one of them may be in models.json)`,
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
    `\`models.${name}\`: the environment variable ${apiKeyEnv} is ${key === undefined ? 'not set' : 'empty'}; set it, or name another one in \`apiKeyEnv\``,
  )
}

/** With a cache, all calls go through the driver, which has the cache. */
const routeOf = (given: ModelSettings, mode: ModelsMode): 'driver' | 'direct' =>
  mode.cache === false ? (given.via ?? defaultRoute(given, mode)) : 'driver'

/** Without a key, workers may make the calls. But a loopback address means another server on another machine. */
function defaultRoute(
  { apiKeyEnv, baseURL, headers }: ModelSettings,
  { onThisMachine }: WorkersPlace,
): 'driver' | 'direct' {
  if (apiKeyEnv !== undefined || secretHeaders({ ...(headers && { headers }) }).length > 0) return 'driver'
  return onThisMachine || !isLoopback(new URL(baseURL).hostname) ? 'direct' : 'driver'
}

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || /^127\./.test(host)

/** The headers of a call. */
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

/** The timeout of one attempt. */
export const callMsOf = (model: RunModel): number =>
  model.kind === 'object' ? DEFAULT_TIMEOUT_MS : timesOf(model.settings).timeoutMs

function descriptionOf(model: RunModel): ModelDescription {
  if (model.kind === 'object')
    return {
      ...{
        kind: 'object',
        model: model.object.modelId,
        via: 'driver',
        price: model.object.price,
        extraBody: undefined,
      },
      ...{ tokens: false, permitMs: DEFAULT_PERMIT_MS },
    }
  const { settings, via, server } = model
  const { timeoutMs, permitMs, maxRetries } = timesOf(settings)
  const { apiKeyEnv } = settings
  const direct = { urls: server.replicas.urls, headers: headersOf(model), timeoutMs, maxRetries, apiKeyEnv }
  return {
    ...{ kind: 'server', model: settings.model, via, price: settings.price, extraBody: settings.extraBody },
    ...{ tokens: settings.tokens ?? false, permitMs },
    ...(via === 'direct' && { direct }),
  }
}

/** For errors: the model and its address. */
export const shownModel = (model: RunModel): { readonly what: string; readonly where: string } => ({
  what: `model '${model.name}'`,
  where: whereOf(model.kind === 'object' ? model.object : model.settings),
})

const whereOf = (given: ModelSettings | GivenModel): string =>
  isLanguageModel(given) ? `${given.modelId} of ${given.provider}` : `${given.model} at ${publicURL(given.baseURL)}`
