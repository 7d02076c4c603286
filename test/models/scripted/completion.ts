import type { Content } from './content.ts'
import type { RequestBody } from './request.ts'
import type { Scenario } from './scenario.ts'
import { logprobOf, type Token, tokenize } from './tokens.ts'

/** Ends a turn, unless it was cut by its limit. */
const END: Token = { id: 50_000, text: '' }

/** What a model has said, token by token. */
export interface Completion {
  readonly content: Content
  readonly prompt: readonly number[]
  readonly reasoning: readonly Token[]
  readonly text: readonly Token[]
  readonly calls: readonly Token[]
  readonly end: readonly Token[]
}

export function completionOf(content: Content, body: RequestBody): Completion {
  const text = tokenize(content.text)
  const limit = body.max_completion_tokens ?? body.max_tokens ?? Number.POSITIVE_INFINITY
  const cut = content.toolCalls.length === 0 && content.reasoning === undefined && text.length + 1 > limit
  const kept = cut ? text.slice(0, limit) : text
  return {
    content: cut ? { ...content, text: kept.map((token) => token.text).join(''), finish: 'length' } : content,
    prompt: promptIds(body),
    reasoning: tokenize(content.reasoning?.text ?? ''),
    text: kept,
    calls:
      content.toolCalls.length === 0 ? [] : tokenize(JSON.stringify(content.toolCalls.map((call) => call.function))),
    end: cut ? [] : [END],
  }
}

function promptIds({ messages = [], prompt = '' }: RequestBody): number[] {
  if (typeof prompt !== 'string') return [...prompt]
  const text = messages.length > 0 ? messages.map((message) => JSON.stringify(message)).join('\n') : prompt
  return tokenize(text).map(({ id }) => id)
}

export const allTokens = ({ reasoning, text, calls, end }: Completion): Token[] => [
  ...reasoning,
  ...text,
  ...calls,
  ...end,
]

export const totalTokens = (completion: Completion): number => completion.prompt.length + allTokens(completion).length

/** The message of a chat answer. */
export const messageOf = ({ content: { text, toolCalls, reasoning } }: Completion) => ({
  role: 'assistant',
  content: text === '' && toolCalls.length > 0 ? null : text,
  ...(reasoning === undefined ? {} : { [reasoning.field]: reasoning.text }),
  ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
})

/** Undefined if the scenario has none. */
export function usageOf(completion: Completion, { usage }: Scenario): object | undefined {
  if (usage === 'none') return undefined
  const prompt_tokens = completion.prompt.length
  const completion_tokens = allTokens(completion).length
  const reasoning_tokens = completion.reasoning.length
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    ...(usage === 'cached' ? { prompt_tokens_details: { cached_tokens: Math.floor(prompt_tokens / 2) } } : {}),
    ...(reasoning_tokens > 0 ? { completion_tokens_details: { reasoning_tokens } } : {}),
  }
}

/** OpenAI's servers have them for the text; those that people run themselves, for every token. */
export const tokensWithLogprobs = (completion: Completion, { dialect }: Scenario): readonly Token[] =>
  dialect === 'openai' ? completion.text : allTokens(completion)

/** `logprobs` of chat answers, and of llama.cpp's completions. */
export const chatLogprobs = (tokens: readonly Token[], { dialect }: Scenario) => ({
  content: tokens.map((token) => ({
    ...(dialect === 'llama' ? { id: token.id } : {}),
    token: token.text,
    bytes: [...Buffer.from(token.text)],
    logprob: logprobOf(token),
    top_logprobs: [],
  })),
})

/** `logprobs` of other completions. */
export const textLogprobs = (tokens: readonly Token[]) => ({
  tokens: tokens.map(({ text }) => text),
  token_logprobs: tokens.map(logprobOf),
  top_logprobs: null,
  text_offset: offsets(tokens),
})

function offsets(tokens: readonly Token[]): number[] {
  let at = 0
  return tokens.map(({ text }) => (at += text.length) - text.length)
}
