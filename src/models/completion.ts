/** A reply of a server, as far as anything here reads it. All of it comes from outside: every field may be missing or wrong. */
export interface Completion {
  readonly id?: unknown
  readonly model?: unknown
  readonly choices?: readonly Choice[]
  readonly usage?: WireUsage | null
  readonly error?: unknown
  readonly prompt_token_ids?: unknown
  /** llama.cpp: how many tokens of the prompt it had in its cache, and others. */
  readonly timings?: unknown
}

export interface Choice {
  readonly message?: WireReply
  /** Of `/completions`. */
  readonly text?: unknown
  readonly finish_reason?: unknown
  readonly logprobs?: WireLogProbs | null
  /** vLLM, with `return_token_ids`. */
  readonly token_ids?: unknown
  readonly prompt_token_ids?: unknown
}

export interface WireReply {
  readonly content?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly refusal?: unknown
  readonly tool_calls?: readonly WireToolCall[] | null
}

export interface WireToolCall {
  readonly id?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown }
}

export interface WireLogProbs {
  /** Of chat completions; and of `/completions` of llama.cpp. */
  readonly content?: readonly { readonly id?: unknown; readonly logprob?: unknown; readonly token?: unknown }[] | null
  /** Of `/completions`. */
  readonly token_logprobs?: readonly unknown[]
}

export interface WireUsage {
  readonly prompt_tokens?: unknown
  readonly completion_tokens?: unknown
  readonly total_tokens?: unknown
  readonly prompt_tokens_details?: { readonly cached_tokens?: unknown } | null
  readonly completion_tokens_details?: { readonly reasoning_tokens?: unknown } | null
}

/** Tokens of a call; undefined where the server does not say. */
export interface TokenCount {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cached: number | undefined
  readonly reasoning: number | undefined
}

export function tokenCount(usage: WireUsage | null | undefined): TokenCount {
  return {
    input: count(usage?.prompt_tokens),
    output: count(usage?.completion_tokens),
    cached: count(usage?.prompt_tokens_details?.cached_tokens),
    reasoning: count(usage?.completion_tokens_details?.reasoning_tokens),
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The completion in a body: JSON, or a stream of chunks put together. Undefined: it is neither. */
export function completionIn(body: string): Completion | undefined {
  if (/^\s*(data|event|id|retry|:)/.test(body.slice(0, 100)) && !body.trimStart().startsWith('{')) return merged(body)
  return jsonObject(body)
}

function jsonObject(text: string): Completion | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Completion) : undefined
  } catch {
    return undefined
  }
}

/** What the chunks of a choice came to so far. */
interface Growing {
  content: string
  reasoning: string
  text: string | undefined
  calls: Map<number, { id: string; name: string; arguments: string }>
  finish: unknown
  logProbs: unknown[]
  tokenIds: unknown[]
  promptIds: unknown
}

interface Chunk extends Omit<Completion, 'choices'> {
  readonly choices?: readonly (Choice & { readonly index?: unknown; readonly delta?: WireReply })[]
}

/** The chunks of a stream (server-sent events) as the one completion that they are parts of. Undefined: the stream was cut short. */
function merged(text: string): Completion | undefined {
  let head: Chunk | undefined
  let usage: WireUsage | null | undefined
  let done = false
  const choices = new Map<number, Growing>()
  for (const event of events(text)) {
    if (event === '[DONE]') {
      done = true
      continue
    }
    const chunk = jsonObject(event) as Chunk | undefined
    if (chunk === undefined) return undefined
    if (chunk.error !== undefined) return { error: chunk.error }
    head ??= chunk
    usage = chunk.usage ?? usage
    for (const choice of listOf(chunk.choices)) grow(choices, choice)
  }
  if (head === undefined) return undefined
  const all = [...choices.entries()].sort(([a], [b]) => a - b).map(([, growing]) => growing)
  // Without a word about its end, nobody knows whether this is all.
  if (!done && !all.some(({ finish }) => finish !== undefined && finish !== null)) return undefined
  return { ...head, choices: all.map(grown), ...(usage && { usage }) }
}

/** The data of each event. Lines may end in any of three ways. */
function* events(text: string): Generator<string> {
  let data: string[] = []
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line === '') {
      if (data.length > 0) yield data.join('\n')
      data = []
    } else if (line.startsWith('data:')) data.push(line.startsWith('data: ') ? line.slice(6) : line.slice(5))
  }
  if (data.length > 0) yield data.join('\n')
}

function grow(choices: Map<number, Growing>, choice: NonNullable<Chunk['choices']>[number]): void {
  const index = count(choice.index) ?? 0
  let growing = choices.get(index)
  if (growing === undefined) {
    growing = { content: '', reasoning: '', text: undefined, calls: new Map(), finish: null, ...noTokens() }
    choices.set(index, growing)
  }
  const { delta, finish_reason, logprobs, token_ids, prompt_token_ids } = choice
  growing.content += textOf(delta?.content)
  growing.reasoning += textOf(delta?.reasoning_content ?? delta?.reasoning)
  if (typeof choice.text === 'string') growing.text = (growing.text ?? '') + choice.text
  for (const [place, call] of listOf(delta?.tool_calls).entries()) growCall(growing, place, call)
  if (finish_reason !== undefined && finish_reason !== null) growing.finish = finish_reason
  for (const logProb of listOf(logprobs?.content)) growing.logProbs.push(logProb)
  if (Array.isArray(token_ids)) for (const id of token_ids) growing.tokenIds.push(id)
  growing.promptIds ??= prompt_token_ids
}

const noTokens = () => ({ logProbs: [] as unknown[], tokenIds: [] as unknown[], promptIds: undefined as unknown })

function growCall(growing: Growing, place: number, call: WireToolCall & { readonly index?: unknown }): void {
  const index = count(call.index) ?? place
  const known = growing.calls.get(index) ?? { id: '', name: '', arguments: '' }
  known.id ||= textOf(call.id)
  known.name += textOf(call.function?.name)
  known.arguments += textOf(call.function?.arguments)
  growing.calls.set(index, known)
}

function grown({ content, reasoning, text, calls, finish, logProbs, tokenIds, promptIds }: Growing): Choice {
  const tool_calls = [...calls.values()].map(({ id, name, arguments: given }) => ({
    id,
    function: { name, arguments: given },
  }))
  return {
    message: {
      content: content === '' && tool_calls.length > 0 ? null : content,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(tool_calls.length > 0 && { tool_calls }),
    },
    ...(text !== undefined && { text }),
    finish_reason: finish,
    ...(logProbs.length > 0 && { logprobs: { content: logProbs as NonNullable<WireLogProbs['content']> } }),
    ...(tokenIds.length > 0 && { token_ids: tokenIds }),
    ...(promptIds !== undefined && { prompt_token_ids: promptIds }),
  }
}

/** Its elements that are objects; none, if it is no list. */
export const listOf = <Element extends object>(value: readonly Element[] | null | undefined): Element[] =>
  Array.isArray(value) ? (value as Element[]).filter(isObject) : []

export const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
