import type { Service, ServiceCall } from '../../executor/service.ts'
import { pack } from '../../protocol/pack.ts'
import { isPacked, readPacked } from '../../protocol/read-packed.ts'
import { callURL } from '../address.ts'
import { attemptOf, callModel } from '../calling.ts'
import { post } from '../http.ts'
import {
  DIRECT,
  MODEL,
  MODEL_OBJECT,
  MODELS,
  type ModelAnswer,
  type ModelAsked,
  NOT_STRICT,
  PATHS,
  PERMIT,
  SETTLE,
} from '../protocol.ts'
import type { CachedCalls } from './cached-calls.ts'
import { modelPermit } from './model-permit.ts'
import { callObject } from './object-calls.ts'
import { Permits } from './permits.ts'
import { readNotStrict } from './read-asked.ts'
import { headersOf, type RunModels, shownModel, timesOf } from './run-models.ts'

/** The services for model calls of tasks, by name. */
export function modelServices(
  models: RunModels,
  cached: CachedCalls,
  notice: (line: string) => void,
): Map<string, Service> {
  const permits = new Permits(models)
  models.notice = notice
  return new Map<string, Service>([
    [MODELS, service({ ask: async () => pack(models.describe()) })],
    [MODEL, service({ durable: true, costs: true, ask: async (call) => pack(await answer(models, cached, call)) })],
    [
      MODEL_OBJECT,
      service({ durable: true, costs: true, ask: async (call) => pack(await callObject(models, cached, call)) }),
    ],
    [
      DIRECT,
      service({
        durable: true,
        costs: true,
        ask: () => Promise.reject(new TypeError('workers make direct calls themselves')),
      }),
    ],
    [PERMIT, service({ unlimited: true, ask: (call) => permits.give(call) })],
    [SETTLE, service({ unlimited: true, ask: async (call) => permits.settle(call) })],
    [NOT_STRICT, service({ unlimited: true, ask: notStrict(models, notice) })],
  ])
}

/** Says once per model that a schema is sent without `strict`. */
function notStrict(models: RunModels, notice: (line: string) => void): Service['ask'] {
  const said = new Set<string>()
  return async ({ body, lease }) => {
    const told = readNotStrict(readPacked(body))
    const { name } = models.get(told.model)
    if (!said.has(name))
      notice(
        `agent '${lease.entry.agent.ref.name}': the JSON schema for model '${name}' is sent without \`strict\`, so the server may not enforce it: ${told.why}`,
      )
    said.add(name)
    return pack(true)
  }
}

function service({
  ask,
  durable = false,
  costs = false,
  unlimited = false,
}: Pick<Service, 'ask'> & Partial<Service>): Service {
  return {
    ...{ once: durable, durable, costs, unlimited, atOnce: Number.POSITIVE_INFINITY, ask },
    check(body) {
      if (!(body instanceof String || isPacked(body))) throw new TypeError('a malformed request')
    },
  }
}

async function answer(models: RunModels, cached: CachedCalls, call: ServiceCall): Promise<ModelAnswer> {
  const asked = readPacked(call.body) as ModelAsked
  const model = models.get(asked.model)
  if (model.kind === 'object' || !PATHS.includes(asked.path) || typeof asked.body !== 'string')
    throw new TypeError('a malformed model call')
  const { settings, server } = model
  const { timeoutMs, permitMs, maxRetries } = timesOf(settings)
  const headers = headersOf(model)
  const { signal } = call
  const send = () =>
    server.replicas.use((url) => post({ url: callURL(url, asked.path), headers, body: asked.body, timeoutMs, signal }))
  const { path, body } = asked
  return cached.call(call, { server: settings.baseURL, model: settings.model, path, body }, async () => {
    const { answer, retries, ms } = await callModel({
      ...{ ...shownModel(model), apiKeyEnv: settings.apiKeyEnv, permitMs, maxRetries },
      ...{ hasBreaker: true, mayLoad: asked.mayLoad === true },
      permit: (wanted) => modelPermit(model, call, { tokens: asked.tokens, ...wanted }),
      attempt: () => attemptOf(send),
    })
    return { body: answer.body, ms, retries }
  })
}
