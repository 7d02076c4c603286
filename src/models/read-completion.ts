import {
  type Choice,
  type Completion,
  count,
  jsonObject,
  listOf,
  textOf,
  type WireLogProbs,
  type WireReply,
  type WireToolCall,
  type WireUsage,
} from './completion.ts'

/** Parses a body: JSON, or a stream of chunks, which are merged. Undefined if it is neither. */
export function completionIn(body: string): Completion | undefined {
  // There may be a byte order mark.
  return /^\uFEFF?\s*(data|event|id|retry|:)/.test(body.slice(0, 100)) ? mergedChunks(body) : jsonObject(body)
}

/** The state of a choice while its chunks are merged. */
interface Growing {
  content: string
  /** If the content consists of parts instead of text. */
  parts: unknown[]
  reasoning: string
  refusal: string
  text: string | undefined
  readonly calls: GrowingCalls
  finish: unknown
  error: unknown
  readonly logProbs: unknown[]
  readonly tokenIds: unknown[]
  promptIds: unknown
}

interface Chunk extends Omit<Completion, 'choices'> {
  readonly choices?: readonly (Choice & { readonly index?: unknown; readonly delta?: WireReply })[]
}

/** Merges the chunks of a stream (server-sent events) into one completion. Undefined if the stream is incomplete. */
function mergedChunks(text: string): Completion | undefined {
  let head: Chunk | undefined
  let id = ''
  let model = ''
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
    if (chunk.error !== undefined && chunk.error !== null) return { error: chunk.error }
    head ??= chunk
    // The first chunk may be empty (Azure).
    id ||= textOf(chunk.id)
    model ||= textOf(chunk.model)
    usage = chunk.usage ?? usage
    for (const choice of listOf(chunk.choices)) grow(choices, choice)
  }
  if (head === undefined) return undefined
  const all = [...choices.entries()].sort(([a], [b]) => a - b).map(([, growing]) => growing)
  // Without an end marker, the stream may be incomplete.
  if (!done && !all.some(({ finish }) => finish !== undefined && finish !== null)) return undefined
  return { ...head, ...(id && { id }), ...(model && { model }), choices: all.map(grown), ...(usage && { usage }) }
}

/** The data of each event. All three line endings are allowed. */
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
  if (growing === undefined) choices.set(index, (growing = begun()))
  const { delta, finish_reason, error, logprobs, token_ids, prompt_token_ids } = choice
  growing.content += textOf(delta?.content)
  if (Array.isArray(delta?.content)) for (const part of delta.content) growing.parts.push(part)
  growing.reasoning += textOf(delta?.reasoning_content) || textOf(delta?.reasoning)
  growing.refusal += textOf(delta?.refusal)
  if (typeof choice.text === 'string') growing.text = (growing.text ?? '') + choice.text
  for (const call of listOf(delta?.tool_calls)) growing.calls.add(call)
  growing.finish = finish_reason ?? growing.finish
  growing.error ??= error
  for (const logProb of listOf(logprobs?.content)) growing.logProbs.push(logProb)
  if (Array.isArray(token_ids)) for (const id of token_ids) growing.tokenIds.push(id)
  growing.promptIds ??= prompt_token_ids
}

const begun = (): Growing => ({
  ...{ content: '', parts: [], reasoning: '', refusal: '', text: undefined, calls: new GrowingCalls() },
  ...{ finish: null, error: undefined, logProbs: [], tokenIds: [], promptIds: undefined },
})

interface GrowingCall {
  readonly index: number | undefined
  id: string
  name: string
  arguments: string
}

/**
 * Merges tool calls from the chunks of a stream. A chunk belongs to the call with its `index`. Some servers omit it
 * (Gemini), or use the same for all calls; then a new id with a name starts a new call. Some repeat id and name in
 * every chunk.
 */
class GrowingCalls {
  readonly #all: GrowingCall[] = []
  readonly #last = new Map<number, GrowingCall>()

  add(chunk: WireToolCall & { readonly index?: unknown }): void {
    const index = count(chunk.index)
    const [id, name, given] = [textOf(chunk.id), textOf(chunk.function?.name), textOf(chunk.function?.arguments)]
    const last = index === undefined ? this.#all.at(-1) : this.#last.get(index)
    if (last === undefined || isAnother(last, index, id, name, given)) {
      const call = { index, id, name, arguments: given }
      this.#all.push(call)
      if (index !== undefined) this.#last.set(index, call)
      return
    }
    last.id ||= id
    last.name ||= name
    last.arguments += given
  }

  get all(): GrowingCall[] {
    const all = this.#all.filter(({ name }) => name !== '')
    return all.every(({ index }) => index !== undefined) ? all.sort((a, b) => a.index! - b.index!) : all
  }
}

function isAnother(last: GrowingCall, index: number | undefined, id: string, name: string, given: string): boolean {
  if (name === '' || last.name === '') return false
  if (id !== '' && id === last.id) return false
  if (name !== last.name) return true
  if (id === '' || index === undefined) return index === undefined
  // The same name with another id is a new call, unless the previous one has only begun.
  return given.startsWith('{') || last.arguments.endsWith('}')
}

function grown({ content, parts, reasoning, refusal, text, calls, finish, error, ...tokens }: Growing): Choice {
  const { logProbs, tokenIds, promptIds } = tokens
  const tool_calls = calls.all.map(({ id, name, arguments: given }) => ({ id, function: { name, arguments: given } }))
  const whole = parts.length === 0 ? content : content === '' ? parts : [{ type: 'text', text: content }, ...parts]
  return {
    message: {
      content: whole === '' && (tool_calls.length > 0 || refusal !== '') ? null : whole,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(refusal !== '' && { refusal }),
      ...(tool_calls.length > 0 && { tool_calls }),
    },
    ...(text !== undefined && { text }),
    finish_reason: finish,
    ...(error !== undefined && { error }),
    ...(logProbs.length > 0 && { logprobs: { content: logProbs as NonNullable<WireLogProbs['content']> } }),
    ...(tokenIds.length > 0 && { token_ids: tokenIds }),
    ...(promptIds !== undefined && { prompt_token_ids: promptIds }),
  }
}
