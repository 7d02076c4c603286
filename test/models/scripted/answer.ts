import {
  allTokens,
  type Completion,
  chatLogprobs,
  messageOf,
  textLogprobs,
  tokensWithLogprobs,
  usageOf,
} from './completion.ts'
import { jsonPayload, type Payload } from './payload.ts'
import type { RequestBody } from './request.ts'
import type { Scenario } from './scenario.ts'
import type { Token } from './tokens.ts'

/** `/v1/chat/completions` or `/v1/completions`. */
export type Api = 'chat' | 'text'

export interface Answering {
  readonly api: Api
  readonly id: string
  readonly body: RequestBody
  readonly scenario: Scenario
  readonly completion: Completion
}

/** Always the same: answers are compared. */
const CREATED = 1_700_000_000

const wantsLogprobs = ({ logprobs }: RequestBody) => logprobs !== undefined && logprobs !== false
const wantsIds = ({ body, scenario: { dialect } }: Answering) =>
  (dialect === 'vllm' || dialect === 'sglang') && body.return_token_ids === true
const idsOf = (tokens: readonly Token[]) => tokens.map(({ id }) => id)

const logprobsOf = ({ api, body, scenario }: Answering, tokens: readonly Token[]) =>
  !wantsLogprobs(body)
    ? null
    : api === 'chat' || scenario.dialect === 'llama'
      ? chatLogprobs(tokens, scenario)
      : textLogprobs(tokens)

/** In the answer, or in its choice. */
function promptIds(answering: Answering): { readonly answer: object; readonly choice: object } {
  const { api, scenario, completion } = answering
  const ids = wantsIds(answering) ? { prompt_token_ids: completion.prompt } : {}
  return api === 'chat' && scenario.dialect === 'vllm' ? { answer: ids, choice: {} } : { answer: {}, choice: ids }
}

export function wholeAnswer(answering: Answering): Payload {
  const { api, id, body, scenario, completion } = answering
  const prompt = promptIds(answering)
  const choice = {
    index: 0,
    ...(api === 'chat' ? { message: messageOf(completion) } : { text: completion.content.text }),
    logprobs: logprobsOf(answering, tokensWithLogprobs(completion, scenario)),
    finish_reason: completion.content.finish,
    ...(wantsIds(answering) ? { token_ids: idsOf(allTokens(completion)) } : {}),
    ...prompt.choice,
  }
  const usage = usageOf(completion, scenario)
  return jsonPayload(200, {
    id,
    object: api === 'chat' ? 'chat.completion' : 'text_completion',
    created: CREATED,
    model: body.model,
    choices: [choice],
    ...prompt.answer,
    ...(usage === undefined ? {} : { usage }),
  })
}

const event = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`

/** The same as server-sent events, one per chunk. */
export function streamedAnswer(answering: Answering): Payload {
  const { api, id, body, scenario, completion } = answering
  const { content, reasoning, text, calls, end } = completion
  const object = api === 'chat' ? 'chat.completion.chunk' : 'text_completion'
  const base = { id, object, created: CREATED, model: body.model }
  const ids = wantsIds(answering)
  const ofText = new Set(text)
  const events: string[] = []

  const push = (delta: Readonly<Record<string, unknown>>, tokens: readonly Token[] = [], finish_reason?: string) => {
    const prompt = events.length === 0 ? promptIds(answering) : { answer: {}, choice: {} }
    const scored = scenario.dialect === 'openai' ? tokens.filter((token) => ofText.has(token)) : tokens
    const choice = {
      index: 0,
      ...(api === 'chat' ? { delta } : { text: delta.content ?? '' }),
      ...prompt.choice,
      ...(scored.length > 0 ? { logprobs: logprobsOf(answering, scored) } : {}),
      finish_reason: finish_reason ?? null,
      ...(ids && tokens.length > 0 ? { token_ids: idsOf(tokens) } : {}),
    }
    events.push(event({ ...base, choices: [choice], ...prompt.answer }))
  }

  if (api === 'chat') push({ role: 'assistant', content: '' })
  if (content.reasoning !== undefined) push({ [content.reasoning.field]: content.reasoning.text }, reasoning)
  for (const token of text) push({ content: token.text }, [token])
  for (const [index, call] of content.toolCalls.entries()) {
    const { name, arguments: args } = call.function
    const opening = { index, id: call.id, type: call.type, function: { name, arguments: '' } }
    push({ tool_calls: [opening] }, index === 0 ? calls : [])
    for (const piece of args.match(/.{1,4}/gsu) ?? []) push({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  push({}, end, content.finish)
  const usage = body.stream_options?.include_usage === true ? usageOf(completion, scenario) : undefined
  if (usage !== undefined) events.push(event({ ...base, choices: [], usage }))
  events.push(event('[DONE]'))
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, chunks: events }
}

/** An error where the answer has begun: after two events, or in the place of a whole answer. */
export function withStreamError({ status, headers, chunks }: Payload): Payload {
  const error = {
    error: { message: 'the server had an error in the middle of the answer', type: 'server_error', code: null },
  }
  if (chunks.length === 1) return jsonPayload(status, error, headers)
  return { status, headers, chunks: [...chunks.slice(0, 2), event(error), event('[DONE]')] }
}
