import type { ServiceCall } from '../../executor/service.ts'
import { readPacked } from '../../protocol/read-packed.ts'
import { type Attempt, callModel } from '../calling.ts'
import { type Failure, failureOf } from '../failures.ts'
import type { CallOptions, GenerateResult } from '../language-model.ts'
import type { ObjectAnswer, ObjectAsked } from '../protocol.ts'
import { DEFAULT_PERMIT_MS, DEFAULT_RETRIES } from '../settings.ts'
import type { CachedCalls } from './cached-calls.ts'
import { modelPermit } from './model-permit.ts'
import { type ObjectModel, type RunModels, shownModel } from './run-models.ts'

/** Calls an object of an AI SDK provider for a task. */
export async function callObject(models: RunModels, cached: CachedCalls, call: ServiceCall): Promise<ObjectAnswer> {
  const { model: name, options } = readPacked(call.body) as ObjectAsked
  const model = models.get(name)
  if (model.kind !== 'object') throw new TypeError('a malformed call of a model')
  const { provider, modelId } = model.object
  const body = JSON.stringify(options)
  const called = await cached.call(call, { server: provider, model: modelId, path: '', body }, async () => {
    const { answer, retries, ms } = await callModel({
      ...{ what: shownModel(model), apiKeyEnv: undefined, permitMs: DEFAULT_PERMIT_MS, maxRetries: DEFAULT_RETRIES },
      permit: (wanted) => modelPermit(model, call, { tokens: 0, ...wanted }),
      attempt: () => attempt(model, { ...options, abortSignal: call.signal }),
    })
    return { body: JSON.stringify(sendable(answer)), retries, ms }
  })
  const { ms, retries, cached: isCached } = called
  return { result: revived(called.body), ms, retries, cached: isCached }
}

/** Times are texts in JSON. */
function revived(body: string): GenerateResult {
  const result = JSON.parse(body) as GenerateResult
  const timestamp = result.response?.timestamp as string | undefined
  return timestamp === undefined
    ? result
    : { ...result, response: { ...result.response, timestamp: new Date(timestamp) } }
}

async function attempt({ object }: ObjectModel, options: CallOptions): Promise<Attempt<GenerateResult>> {
  try {
    const answer = await object.doGenerate(options)
    const { inputTokens, outputTokens } = answer.usage
    return { answer, tokens: (inputTokens.total ?? 0) + (outputTokens.total ?? 0) }
  } catch (error) {
    if (options.abortSignal?.aborted) throw error
    return { failure: failureIn(error) }
  }
}

/** What providers throw: an `APICallError`, with the status and body of the reply, if there was one. */
function failureIn(error: unknown): Failure {
  const { statusCode, responseHeaders, responseBody, isRetryable, message } = (error ?? {}) as Record<string, unknown>
  const words = typeof message === 'string' ? message : String(error)
  if (typeof statusCode === 'number') {
    const headers = (responseHeaders ?? {}) as Record<string, string>
    const failure = failureOf({
      status: statusCode,
      headers,
      body: typeof responseBody === 'string' ? responseBody : words,
    })
    return failure
  }
  return { kind: isRetryable === true ? 'transient' : 'invalid_request', message: words.slice(0, 500) }
}

/** What tells a task something; headers may have secrets, and need not be plain. */
function sendable({
  content,
  finishReason,
  usage,
  providerMetadata,
  response,
  warnings,
}: GenerateResult): GenerateResult {
  const { id, timestamp, modelId, body } = response ?? {}
  const plain: GenerateResult = {
    ...{ content, finishReason, usage, warnings },
    ...(providerMetadata && { providerMetadata }),
    response: {
      ...(id !== undefined && { id }),
      ...(timestamp && { timestamp }),
      ...(modelId !== undefined && { modelId }),
      ...(body !== undefined && { body }),
    },
  }
  return plain
}
