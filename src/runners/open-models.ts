import type { AnyAgent } from '../agent.ts'
import { didYouMean } from '../did-you-mean.ts'
import { definitionOf } from '../engines/make-engine.ts'
import { ManyworldsError } from '../errors.ts'
import type { BudgetLimits } from '../executor/budget.ts'
import type { Service } from '../executor/service.ts'
import type { ReadyTask } from '../executor/source.ts'
import type { CacheStore } from '../models/driver/cache.ts'
import type { RunModels } from '../models/driver/run-models.ts'
import { MODELS_USED, type ModelsUsed } from '../models/models-used.ts'
import { noPrice, priceOf } from '../models/prices.ts'
import type { ModelSettings } from '../models/settings.ts'
import { LIMITS } from '../protocol/messages.ts'
import type { Redactor } from '../redaction/redactor.ts'
import { registry } from '../registry.ts'
import type { RunConfig } from '../run-config.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { limitsService } from './limits-service.ts'
import { userServices } from './user-services.ts'

/** The models of a run, and what its tasks ask of them. */
export interface OpenedModels {
  readonly models: RunModels
  services(
    store: CacheStore | undefined,
    redactor: Redactor | undefined,
    notice: (line: string) => void,
  ): ReadonlyMap<string, Service>
}

/** Loads the code for models only if the run has some. Throws if one cannot be used, such as for a missing key. */
export async function openModels(
  config: ResolvedConfig,
  failed: (error: Error) => void,
): Promise<OpenedModels | undefined> {
  const { models: given, engineName, inLocal, cache, unusableModels, maxCostUsd, maxTokens } = config
  if (given === undefined) return undefined
  const [{ RunModels }, { modelServices }, { CachedCalls }, { ReplyCache }] = await Promise.all([
    import('../models/driver/run-models.ts'),
    import('../models/driver/model-services.ts'),
    import('../models/driver/cached-calls.ts'),
    import('../models/driver/cache.ts'),
  ])
  const models = new RunModels(
    given,
    {
      onThisMachine: definitionOf(engineName).onThisMachine === true || inLocal,
      cache,
      // A replay calls no model.
      unpriced: maxCostUsd === undefined || cache === 'replay' ? undefined : failed,
      budget: budgetText({ maxCostUsd, maxTokens }),
    },
    unusableModels,
  )
  return {
    models,
    services(store, redactor, notice) {
      const replies = cache !== false && store ? new ReplyCache(store, cache) : undefined
      return modelServices(models, new CachedCalls(replies, redactor), notice)
    },
  }
}

/** Such as `maxCostUsd` and `maxTokens`; undefined without a budget. */
function budgetText(limits: BudgetLimits): string | undefined {
  const keys = (['maxCostUsd', 'maxTokens'] as const).filter((key) => limits[key] !== undefined)
  return keys.length === 0 ? undefined : keys.map((key) => `\`${key}\``).join(' and ')
}

/** If an agent declares the models that it calls, they are checked before its first task starts. */
export function modelsCheck({
  models,
  unusableModels = {},
  maxCostUsd,
  cache,
}: Pick<ResolvedConfig, 'models' | 'unusableModels' | 'maxCostUsd' | 'cache'>): (item: ReadyTask) => void {
  const seen = new WeakSet<AnyAgent>()
  return ({ task: { agent } }) => {
    if (seen.has(agent)) return
    seen.add(agent)
    const run = registry.find(agent.ref.module, agent.ref.name)?.definition.run as
      | { [MODELS_USED]?: ModelsUsed }
      | undefined
    for (const name of run?.[MODELS_USED]?.(agent.params) ?? [])
      if (Object.hasOwn(unusableModels, name)) throw new ManyworldsError('CONFIG_INVALID', unusableModels[name]!)
      else if (!models?.[name]) throw noModel(agent.name, name, models)
      else if (priceOf(models[name]) === undefined && cache !== 'replay') {
        const own = (agent.params as { maxCostUsd?: unknown } | undefined)?.maxCostUsd
        if (maxCostUsd !== undefined) throw noPrice(name, models[name], 'the run has `maxCostUsd`')
        if (typeof own === 'number') throw noPrice(name, models[name], `agent '${agent.name}' has \`maxCostUsd\``)
      }
  }
}

function noModel(agent: string, name: string, models: ResolvedConfig['models']): ManyworldsError {
  const names = Object.keys(models ?? {})
  const there = names.length === 0 ? 'has no models' : `has only ${names.join(', ')}`
  return new ManyworldsError(
    'MODEL_UNKNOWN',
    `agent '${agent}' calls the model '${name}'${didYouMean(name, names)}, and the run ${there}; configure it: models: { ${JSON.stringify(name)}: { baseURL: '…', model: '…' } }, in models.json, or with --model ${name}=…`,
  )
}

/** The services of a run: the user's own, and those that other keys of the configuration bring. */
export function servicesOf(
  { services, limits }: ResolvedConfig,
  ofModels: ReadonlyMap<string, Service> | undefined,
): ReadonlyMap<string, Service> {
  const own = userServices(services as RunConfig['services'])
  return new Map([...(own ?? []), ...(ofModels ?? []), [LIMITS, limitsService(limits)]])
}

/** What the run file stores about a model. An allow list, because headers and body fields may be secret. */
export function storedModels(models: NonNullable<ResolvedConfig['models']>): object {
  return Object.fromEntries(
    Object.entries(models).map(([name, given]) => [
      name,
      'doGenerate' in given ? { provider: given.provider, model: given.modelId } : storedSettings(given),
    ]),
  )
}

function storedSettings({
  baseURL,
  model,
  apiKeyEnv,
  requestsPerMinute,
  tokensPerMinute,
  maxConcurrent,
  price,
  via,
}: ModelSettings): object {
  const url = new URL(baseURL)
  const where = `${url.origin}${url.pathname}`
  return { baseURL: where, model, apiKeyEnv, requestsPerMinute, tokensPerMinute, maxConcurrent, price, via }
}
