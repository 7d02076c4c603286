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
  type ModelNote,
  NOTE,
  PATHS,
  PERMIT,
  SETTLE,
} from '../protocol.ts'
import type { CachedCalls } from './cached-calls.ts'
import { modelPermit } from './model-permit.ts'
import { callObject } from './object-calls.ts'
import { Permits } from './permits.ts'
import { readNote } from './read-asked.ts'
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
    [NOTE, service({ unlimited: true, ask: notes(models, notice) })],
  ])
}

/** Reasons may contain names of a schema that differ in each task. */
const MAX_NOTES = 100

/** Says a line for each kind of note, once per agent, model and reason. */
function notes(models: RunModels, notice: (line: string) => void): Service['ask'] {
  const said = new Set<string>()
  return async ({ body, lease }) => {
    const note = readNote(readPacked(body))
    const { name: model } = models.get(note.model)
    const agent = lease.entry.agent.ref.name
    const key = JSON.stringify([note.kind, agent, model, note.why])
    if (!said.has(key) && said.size < MAX_NOTES) {
      said.add(key)
      notice(`agent '${agent}': ${lineOf(note, model)}`)
    }
    return pack(true)
  }
}

function lineOf({ kind, why }: ModelNote, model: string): string {
  switch (kind) {
    case 'not-strict':
      return `the JSON schema for model '${model}' is sent without \`strict\`, so the server may not enforce it: ${why}`
    case 'not-awaited':
      return `a task ended while a call of model '${model}' was under way, which was aborted: await every call. The logs of the tasks say where`
    default:
      return kind satisfies never
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
