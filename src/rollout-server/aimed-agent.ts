import type { AnyAgent } from '../agent.ts'
import { isLanguageModel } from '../models/language-model.ts'
import { MODELS_USED, type ModelsUsed } from '../models/models-used.ts'
import type { ModelSettings, ModelsConfig } from '../models/settings.ts'
import { registry } from '../registry.ts'
import type { RunConfig } from '../run-config.ts'
import { badRequest } from './problem.ts'
import type { RequestedModel, RolloutRequest } from './request.ts'

/** The server of a trainer queues by itself. Held back to a rate that is found out bit by bit, each new version of a model would begin slowly. */
const UNLIMITED_PER_MINUTE = 1_000_000_000

/** An agent whose model is the caller's. */
export interface Aimed {
  readonly agent: AnyAgent
  readonly models: ModelsConfig
}

/** Has the agent call the model that the caller names, and sample as the caller says. */
export function aimed(given: AnyAgent, config: RunConfig, { model, sampling = {} }: RolloutRequest): Aimed {
  const params = (given.params ?? {}) as Readonly<Record<string, unknown>>
  const own = sampledBy(params, sampling)
  const agent = own === undefined ? given : given.withParams({ ...params, ...own })
  const { models = {} } = config
  if (model === undefined) {
    if (Object.keys(sampling).some((key) => !Object.hasOwn(params, PARAMS.get(key) ?? '')))
      throw badRequest('`sampling` needs `model`: without it, the models of the file are called as they are')
    return { agent, models }
  }
  const name = model.name ?? modelOf(given)
  if (name === undefined)
    throw badRequest(
      `agent '${given.name}' does not say which model it calls: give the name that it uses for it as \`model.name\``,
    )
  return { agent, models: { ...models, [name]: settingsOf(model, models[name], sampling) } }
}

/** Model agents say which one they call: the one that they name, or their policy. */
function modelOf({ ref, params }: AnyAgent): string | undefined {
  const run = registry.find(ref.module, ref.name)?.definition.run as { [MODELS_USED]?: ModelsUsed } | undefined
  const [name] = run?.[MODELS_USED]?.(params) ?? []
  return name
}

/** Settings that a model agent has itself, and would send in place of those of the model. */
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
  // An agent that is greedy by itself would not take the temperature.
  const samples = Object.hasOwn(params, 'mode') && sampling.temperature !== undefined
  return { ...(samples && { mode: 'sample' }), ...Object.fromEntries(own) }
}

/** Of what the file says of the model, only what does not belong to another server. */
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
