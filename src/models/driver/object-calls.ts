import type { ServiceCall } from '../../executor/service.ts'
import { readPacked } from '../../protocol/read-packed.ts'
import { type Attempt, callModel } from '../calling.ts'
import { MAX_REPLY_BYTES } from '../http.ts'
import type { CallOptions, GenerateResult } from '../language-model.ts'
import type { ObjectAnswer, ObjectAsked } from '../protocol.ts'
import { withUrlObjects } from '../sent-urls.ts'
import { DEFAULT_PERMIT_MS, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS } from '../settings.ts'
import type { CachedCalls } from './cached-calls.ts'
import { modelPermit } from './model-permit.ts'
import { failureIn } from './object-failures.ts'
import { resultIn } from './object-results.ts'
import { type ObjectModel, type RunModels, shownModel } from './run-models.ts'

/** Calls an object of an AI SDK provider for a task. */
export async function callObject(models: RunModels, cached: CachedCalls, call: ServiceCall): Promise<ObjectAnswer> {
  const { model: name, options } = readPacked(call.body) as ObjectAsked
  const model = models.get(name)
  if (model.kind !== 'object') throw new TypeError('a malformed model call')
  const { provider, modelId } = model.object
  const body = JSON.stringify(options)
  const called = await cached.call(call, { server: provider, model: modelId, path: '', body }, async () => {
    const { answer, retries, ms } = await callModel({
      ...{ ...shownModel(model), apiKeyEnv: undefined, permitMs: DEFAULT_PERMIT_MS, maxRetries: DEFAULT_RETRIES },
      hasBreaker: true,
      permit: (wanted) => modelPermit(model, call, { tokens: 0, ...wanted }),
      attempt: () => attempt(model, withUrlObjects(options), call.signal),
    })
    return { body: JSON.stringify(answer, bytesAsText), retries, ms }
  })
  const { ms, retries, cached: isCached } = called
  return { result: revived(called.body), ms, retries, cached: isCached }
}

/** Files in results may be bytes or base64. */
const bytesAsText = (_: string, value: unknown) =>
  value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value

/** JSON stores dates as strings. */
function revived(body: string): GenerateResult {
  const result = JSON.parse(body) as GenerateResult
  const timestamp = result.response?.timestamp as string | undefined
  return timestamp === undefined
    ? result
    : { ...result, response: { ...result.response, timestamp: new Date(timestamp) } }
}

async function attempt(
  { object }: ObjectModel,
  options: Omit<CallOptions, 'abortSignal'>,
  taken: AbortSignal,
): Promise<Attempt<GenerateResult>> {
  const abortSignal = AbortSignal.any([taken, AbortSignal.timeout(DEFAULT_TIMEOUT_MS)])
  try {
    const answer = resultIn(await raced(() => object.doGenerate({ ...options, abortSignal } as never), abortSignal))
    if (sizeOf(answer) > MAX_REPLY_BYTES) return { failure: { kind: 'too_large', message: TOO_LARGE } }
    const { inputTokens, outputTokens } = answer.usage
    return { answer, tokens: (inputTokens.total ?? 0) + (outputTokens.total ?? 0) }
  } catch (error) {
    if (taken.aborted) throw error
    return { failure: failureIn(error) }
  }
}

const TOO_LARGE = `the reply is larger than ${MAX_REPLY_BYTES / 2 ** 20} MB, the most that is kept`

/** Roughly: the text of the answer, which is nearly all of it. */
const sizeOf = ({ content }: GenerateResult): number =>
  content.reduce((sum, part) => sum + (part.type === 'tool-call' ? part.input.length : (part.text?.length ?? 0)), 0)

/** Does not wait for an object that ignores the signal. */
async function raced<Result>(call: () => PromiseLike<Result>, signal: AbortSignal): Promise<Result> {
  let stop: (() => void) | undefined
  const over = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
  const work = (async () => call())()
  try {
    return await Promise.race([work, over])
  } finally {
    signal.removeEventListener('abort', stop!)
    over.catch(() => {})
    work.catch(() => {})
  }
}
