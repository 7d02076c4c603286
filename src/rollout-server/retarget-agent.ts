import type { AnyAgent } from '../agent.ts'
import { isLanguageModel } from '../models/language-model.ts'
import { MODELS_USED, type ModelsUsed } from '../models/models-used.ts'
import type { ModelSettings, ModelsConfig } from '../models/settings.ts'
import { registry } from '../registry.ts'
import type { RunConfig } from '../run-config.ts'
import { badRequest } from './problem.ts'
import type { RequestedModel, RolloutRequest } from './request.ts'

/**
 * Effectively unlimited, because a trainer's server queues by itself, and an adaptive rate would start slowly for each
 * new version of a model.
 */
const UNLIMITED_PER_MINUTE = 1_000_000_000

/** An agent that calls the caller's model. */
export interface RetargetedAgent {
  readonly agent: AnyAgent
  readonly models: ModelsConfig
}

/** Makes the agent call the model in the request, with its sampling settings. */
export function retargetAgent(
  given: AnyAgent,
  config: RunConfig,
  { model, sampling = {} }: RolloutRequest,
): RetargetedAgent {
  const params = (given.params ?? {}) as Readonly<Record<string, unknown>>
  const own = sampledBy(params, sampling)
  const agent = own === undefined ? given : given.withParams({ ...params, ...own })
  const { models = {} } = config
  if (model === undefined) {
    if (Object.keys(sampling).some((key) => !Object.hasOwn(params, PARAMS.get(key) ?? '')))
      throw badRequest('`sampling` requires `model`; without it, the configured models are called unchanged')
    return { agent, models }
  }
  const name = model.name ?? modelOf(given)
  if (name === undefined)
    throw badRequest(
      `agent '${given.name}' does not declare which model it calls; give the model's name in the agent as \`model.name\``,
    )
  return { agent, models: { ...models, [name]: settingsOf(model, models[name], sampling) } }
}

/** The model that an agent declares: the one it names, or its policy. */
function modelOf({ ref, params }: AnyAgent): string | undefined {
  const run = registry.find(ref.module, ref.name)?.definition.run as { [MODELS_USED]?: ModelsUsed } | undefined
  const [name] = run?.[MODELS_USED]?.(params) ?? []
  return name
}

/** Parameters of a model agent that override the model's settings. */
const PARAMS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['max_tokens', 'maxOutputTokens'],
])

function sampledBy(
  params: Readonly<Record<string, unknown>>,
  sampling: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const own = [...PARAMS].flatMap(([wire, param]) =>
    Object.hasOwn(params, param) && sampling[wire] !== undefined ? [[param, sampling[wire]] as const] : [],
  )
  if (own.length === 0) return undefined
  // A greedy agent would ignore the temperature.
  const samples = Object.hasOwn(params, 'mode') && sampling.temperature !== undefined
  return { ...(samples && { mode: 'sample' }), ...Object.fromEntries(own) }
}

/** Takes from the configured model only the settings that do not depend on its server. */
function settingsOf(
  { baseURL, model, apiKey, logprobs }: RequestedModel,
  file: ModelsConfig[string] | undefined,
  sampling: Readonly<Record<string, unknown>>,
): ModelSettings {
  const { timeoutMs, maxRetries, extraBody } = file === undefined || isLanguageModel(file) ? ({} as never) : file
  return {
    ...{ baseURL, model, requestsPerMinute: UNLIMITED_PER_MINUTE },
    tokens: logprobs === 'processed' ? logprobs : true,
    ...(apiKey !== undefined && { headers: { authorization: `Bearer ${apiKey}` } }),
    extraBody: { ...extraBody, ...sampling },
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(maxRetries !== undefined && { maxRetries }),
  }
}
