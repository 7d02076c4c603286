import { hash } from 'node:crypto'
import { refuse } from './refusal.ts'

export interface WireMessage {
  readonly role: string
  readonly content?: unknown
  readonly [field: string]: unknown
}

/** The first messages of a conversation, as the token ids they had when the last reply was sampled. */
export interface PromptPrefix {
  readonly messages: number
  readonly tokenIds: readonly number[]
}

export type Prompt =
  | {
      readonly kind: 'chat'
      readonly messages: readonly WireMessage[]
      readonly tools: readonly object[]
      readonly continueFinal: boolean
      readonly prefix: PromptPrefix | undefined
    }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'ids'; readonly ids: readonly number[] }

/** Sampling parameters of the sidecar. */
export interface Sampling {
  readonly seed: number
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly maxTokens: number
  readonly stopTexts: readonly string[]
}

/** A validated request. */
export interface Asked {
  readonly model: string
  readonly prompt: Prompt
  readonly sampling: Sampling
  readonly logprobs: boolean
  readonly tokenIds: boolean
}

const DEFAULT_MAX_TOKENS = 1024
const MAX_STOPS = 16
const MAX_STOP_CHARS = 256

type Body = Readonly<Record<string, unknown>>

/** `text`: the raw body. Throws a Refusal. */
export function checkedRequest(api: 'chat' | 'text', text: string): Asked {
  const body = objectIn(text)
  checkUnsupported(body)
  const { model } = body
  if (typeof model !== 'string') refuse('`model` must be the name of an adapter, or "base"')
  return {
    model,
    prompt: api === 'chat' ? chatPrompt(body) : textPrompt(body),
    sampling: samplingOf(body, text),
    logprobs: body.logprobs !== undefined && body.logprobs !== null && body.logprobs !== false,
    tokenIds: body.return_token_ids === true,
  }
}

function objectIn(text: string): Body {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    refuse(`the body is not valid JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('the body must be a JSON object')
  return value as Body
}

/** Refuses options that would otherwise be ignored silently. */
function checkUnsupported(body: Body): void {
  if (body.stream === true) refuse('`stream: true` is not supported; request the whole answer')
  if (body.n !== undefined && body.n !== null && body.n !== 1)
    refuse('`n` must be 1; send a separate request with its own seed for each answer')
  const format = body.response_format as { type?: unknown } | null | undefined
  if (format && format.type !== 'text')
    refuse('`response_format` is not supported, because decoding is not constrained')
  const choice = body.tool_choice
  if (choice !== undefined && choice !== null && choice !== 'auto' && choice !== 'none')
    refuse('`tool_choice` must be "auto" or "none", because decoding is not constrained')
  for (const name of ['frequency_penalty', 'presence_penalty'])
    if (typeof body[name] === 'number' && body[name] !== 0) refuse(`\`${name}\` is not supported`)
}

function chatPrompt(body: Body): Prompt {
  const { messages, tools, continue_final_message, prompt_prefix, tool_choice } = body
  if (!Array.isArray(messages) || messages.length === 0) refuse('`messages` must be a non-empty list')
  for (const [index, message] of messages.entries()) checkMessage(message, index)
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) refuse('`tools` must be a list')
  const continueFinal = continue_final_message === true
  if (continueFinal && (messages.at(-1) as WireMessage).role !== 'assistant')
    refuse('`continue_final_message` requires that the last message is from the assistant')
  return {
    kind: 'chat',
    messages: messages as WireMessage[],
    tools: tool_choice === 'none' ? [] : ((tools ?? []) as object[]),
    continueFinal,
    prefix: prompt_prefix === undefined || prompt_prefix === null ? undefined : prefixOf(prompt_prefix, messages),
  }
}

function checkMessage(message: unknown, index: number): void {
  const { role, content } = (message ?? {}) as WireMessage
  if (typeof role !== 'string') refuse(`message ${index} has no \`role\``)
  const isText =
    typeof content === 'string' ||
    content === null ||
    content === undefined ||
    (Array.isArray(content) && content.every((part) => part?.type === 'text' && typeof part.text === 'string'))
  if (!isText) refuse(`message ${index} has content that is not text; this model reads only text`)
}

function prefixOf(given: unknown, messages: readonly WireMessage[]): PromptPrefix {
  const { messages: count, token_ids: ids } = given as { messages?: unknown; token_ids?: unknown }
  if (!Number.isInteger(count) || (count as number) < 1 || (count as number) > messages.length)
    refuse('`prompt_prefix.messages` must be the number of messages that `token_ids` encode')
  if (messages[(count as number) - 1]!.role !== 'assistant')
    refuse('`prompt_prefix` must end with an assistant message')
  return { messages: count as number, tokenIds: idsOf(ids, '`prompt_prefix.token_ids`') }
}

function textPrompt({ prompt }: Body): Prompt {
  if (typeof prompt === 'string') {
    if (prompt === '') refuse('`prompt` is empty')
    return { kind: 'text', text: prompt }
  }
  return { kind: 'ids', ids: idsOf(prompt, '`prompt`') }
}

function idsOf(value: unknown, what: string): readonly number[] {
  const isIds = Array.isArray(value) && value.every((id) => Number.isInteger(id) && id >= 0 && id <= 0x7fffffff)
  if (!isIds || value.length === 0) refuse(`${what} must be a non-empty list of token ids`)
  return value
}

function samplingOf(body: Body, text: string): Sampling {
  const { seed, max_completion_tokens, max_tokens } = body
  const most = max_completion_tokens ?? max_tokens
  return {
    // Derived from the body by default, so that equal requests get equal answers.
    seed: seed === undefined || seed === null ? seedOf(text) : whole('seed', seed, Number.MIN_SAFE_INTEGER),
    temperature: number('temperature', body.temperature, 1, 0, 100),
    topP: number('top_p', body.top_p, 1, Number.MIN_VALUE, 1),
    // Some clients send -1 for "all".
    topK: body.top_k === undefined || body.top_k === null ? 0 : Math.max(0, whole('top_k', body.top_k, -1)),
    minP: number('min_p', body.min_p, 0, 0, 1),
    maxTokens: most === undefined || most === null ? DEFAULT_MAX_TOKENS : whole('max_tokens', most, 1),
    stopTexts: stopsOf(body.stop),
  }
}

/** 52 bits of a hash. */
const seedOf = (text: string): number => Number.parseInt(hash('sha256', text).slice(0, 13), 16)

function whole(name: string, value: unknown, min: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < min)
    refuse(`\`${name}\` must be a whole number${min < -1 ? '' : ` of at least ${min}`}`)
  return value as number
}

function number(name: string, value: unknown, usual: number, min: number, max: number): number {
  if (value === undefined || value === null) return usual
  if (typeof value !== 'number' || !(value >= min && value <= max))
    refuse(
      `\`${name}\` must be a number ${min === Number.MIN_VALUE ? 'above 0 and' : `from ${min}`}${min === Number.MIN_VALUE ? ' at most' : ' to'} ${max}`,
    )
  return value
}

function stopsOf(value: unknown): readonly string[] {
  if (value === undefined || value === null) return []
  const stops: readonly unknown[] = Array.isArray(value) ? value : [value]
  const isRight = (stop: unknown) => typeof stop === 'string' && stop !== '' && stop.length <= MAX_STOP_CHARS
  if (stops.length > MAX_STOPS || !stops.every(isRight))
    refuse(`\`stop\` must be a string, or at most ${MAX_STOPS} strings, of at most ${MAX_STOP_CHARS} characters`)
  return stops as string[]
}
