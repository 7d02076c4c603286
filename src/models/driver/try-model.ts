import { ManyworldsError } from '../../errors.ts'
import { duration } from '../../text/quantities.ts'
import { callURL } from '../address.ts'
import { attemptOf, callModel } from '../calling.ts'
import { isObject } from '../completion.ts'
import { type HttpReply, post } from '../http.ts'
import { jsonFormat } from '../response-format.ts'
import { type ChatReply, contentText, replyIn, tokensOf } from '../worker/chat-reply.ts'
import { bodyText, type ChatRequest, mostTokens } from '../worker/chat-request.ts'
import { headersOf, limiterOf, type ServedModel, shownModel } from './run-models.ts'

/** The abilities of a model as tested; null if the test was inconclusive. */
export interface TriedModel {
  /** The latency of the first, short call. */
  readonly latencyMs: number
  readonly tokenIds: boolean | null
  readonly logProbs: boolean | null
  readonly toolCalls: boolean | null
  readonly structuredOutput: boolean | null
  /** Whether it reports the number of tokens. */
  readonly usage: boolean
}

/** Token limits for a one-word answer, and for an answer with a tool call or some reasoning. */
const SHORT = 16
const LONGER = 256
const LATE_RETRIES = 1

interface Question {
  readonly prompt: string
  readonly tools?: readonly object[]
  readonly fields?: Readonly<Record<string, unknown>>
  readonly tokens: number
}

const GREETING: Question = { prompt: 'Reply with the word ok.', tokens: SHORT }
const SUM = 'What is 17 + 25?'
const PAIR = {
  ...{ type: 'object', additionalProperties: false, required: ['a', 'b'] },
  properties: { a: { type: 'integer' }, b: { type: 'integer' } },
}
const ADD = { type: 'function', function: { name: 'add', description: 'Adds two numbers.', parameters: PAIR } }
/** As a user's schema is: with an optional property, and silent about others. */
const RESULT = {
  ...{ type: 'object', required: ['sum'] },
  properties: { sum: { type: 'integer' }, note: { type: 'string' } },
}

/**
 * Calls a model as a run would: through its limiter, with its key and headers. First a short question, whose failure is
 * thrown; then, concurrently, one question for each ability that not all servers have.
 */
export async function tryModel(model: ServedModel, timeoutMs: number): Promise<TriedModel> {
  const timeout = new AbortController()
  const late = new ManyworldsError(
    'MODEL_TIMEOUT',
    `${shownModel(model).what}: no answer within ${duration(timeoutMs)}; increase --timeout`,
  )
  const timer = setTimeout(() => timeout.abort(late), timeoutMs)
  try {
    const { ask, ms, reply } = await greet(model, timeoutMs, timeout.signal)
    const tried = (question: Question, did: (reply: ChatReply) => boolean) => ask(question).then(did, refused)
    const [tokens, toolCalls, structuredOutput] = await Promise.all([
      ask({ ...GREETING, fields: { logprobs: true, return_token_ids: true } }).catch(refused),
      tried({ prompt: `${SUM} Use the tool.`, tools: [ADD], tokens: LONGER }, callsAdd),
      tried({ prompt: `${SUM} Answer in JSON: {"sum": …}`, fields: schemaField(), tokens: LONGER }, hasSum),
    ])
    const known = tokens !== null && typeof tokens === 'object'
    return {
      latencyMs: Math.round(ms * 10) / 10,
      tokenIds: known ? tokensOf(tokens, { model: model.settings.model, tokens: true }, false) !== null : tokens,
      logProbs: known ? hasLogProbs(tokens) : tokens,
      ...{ toolCalls, structuredOutput },
      usage: reply.count.input !== undefined && reply.count.output !== undefined,
    }
  } finally {
    clearTimeout(timer)
  }
}

/** The first call. Newer models of some servers refuse `max_tokens` and require another name. */
async function greet(model: ServedModel, timeoutMs: number, signal: AbortSignal) {
  const by = (limit: string) => async (question: Question) =>
    replyIn((await send(model, question, limit, timeoutMs, signal)).answer.body)
  try {
    const { answer, ms } = await send(model, GREETING, 'max_tokens', timeoutMs, signal)
    return { ask: by('max_tokens'), ms, reply: replyIn(answer.body) }
  } catch (error) {
    if (!(isRefusal(error) && error.message.includes('max_tokens'))) throw error
    const { answer, ms } = await send(model, GREETING, 'max_completion_tokens', timeoutMs, signal)
    return { ask: by('max_completion_tokens'), ms, reply: replyIn(answer.body) }
  }
}

function send(model: ServedModel, question: Question, limit: string, timeoutMs: number, signal: AbortSignal) {
  const { settings, server } = model
  const { prompt, tools = [], fields, tokens } = question
  const request: ChatRequest = {
    messages: [{ role: 'user', content: prompt }],
    tools,
    fields: { model: settings.model, ...settings.extraBody, ...fields, [limit]: tokens },
  }
  const body = bodyText(request)
  const call = { headers: headersOf(model), body, timeoutMs: settings.timeoutMs ?? timeoutMs, signal }
  return callModel<HttpReply>({
    ...{ ...shownModel(model), apiKeyEnv: settings.apiKeyEnv, permitMs: timeoutMs, maxRetries: LATE_RETRIES },
    permit: (wanted) => limiterOf(model).acquire({ by: model, tokens: mostTokens(request), signal, ...wanted }),
    attempt: () =>
      attemptOf(() => server.replicas.use((url) => post({ url: callURL(url, '/chat/completions'), ...call }))),
  })
}

const isRefusal = (error: unknown): error is ManyworldsError =>
  ManyworldsError.is(error) && error.code === 'MODEL_INVALID_REQUEST'

/** A server that refuses a request lacks the ability. After a transient failure, nothing is known. */
const refused = (error: unknown): false | null => (isRefusal(error) ? false : null)

/** The same that `ctx.generate({ schema })` sends. */
const schemaField = () => ({ response_format: jsonFormat(RESULT, { nullable: true }).format })

const hasLogProbs = ({ choice }: ChatReply): boolean => {
  const content = choice.logprobs?.content
  return Array.isArray(content) && content.length > 0 && content.every((one) => typeof one?.logprob === 'number')
}

const callsAdd = ({ message }: ChatReply): boolean =>
  message.calls?.some(({ name, raw }) => name === 'add' && isObject(parsed(raw))) ?? false

function hasSum({ message }: ChatReply): boolean {
  const value = parsed(contentText(message))
  return isObject(value) && 'sum' in value && Number.isInteger(value.sum)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
