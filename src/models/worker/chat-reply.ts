import { hash } from 'node:crypto'
import type { Message, StepTokens } from '../../trajectory/step.ts'
import type { Usage } from '../../trajectory/usage.ts'
import { type Choice, type Completion, isObject, listOf, type TokenCount, textOf, tokenCount } from '../completion.ts'
import { completionIn } from '../read-completion.ts'
import type { ModelDescription, ModelPrice } from '../settings.ts'

/** A model's reply, parsed. */
export interface ChatReply {
  readonly message: Message
  readonly finish: string
  readonly count: TokenCount
  readonly completion: Completion
  readonly choice: Choice
}

/** Parses a reply. It was already checked where the call was made: in the driver or in this worker. */
export function replyIn(body: string): ChatReply {
  const completion = completionIn(body)
  const [choice] = listOf(completion?.choices)
  if (completion === undefined || choice === undefined) throw new TypeError('a reply without choices')
  const { finish_reason, message } = choice
  return {
    message: isObject(message) ? messageOf(message, body) : { role: 'assistant', content: textOf(choice.text) },
    finish: typeof finish_reason === 'string' ? finish_reason : 'unknown',
    count: tokenCount(completion.usage),
    completion,
    choice,
  }
}

function messageOf(message: NonNullable<Choice['message']>, body: string): Message {
  const { content, reasoning_content, reasoning, refusal, tool_calls } = message
  const thought = textOf(reasoning_content) || textOf(reasoning)
  const calls = listOf(tool_calls).map(({ id, function: called }, index) => ({
    // Some servers omit the id, which is needed for answering the call: derive one that is the same whenever the reply
    // is parsed.
    id: textOf(id) || `call_${hash('sha256', body).slice(0, 16)}_${index}`,
    name: textOf(called?.name),
    raw: rawArguments(called?.arguments),
  }))
  return {
    role: 'assistant',
    content: withRefusal(content, textOf(refusal)) ?? (calls.length > 0 ? null : ''),
    ...(thought !== '' && { reasoning: thought }),
    ...(calls.length > 0 && { calls }),
  }
}

/** Some servers send an object instead of a string. */
const rawArguments = (given: unknown) => (typeof given === 'string' ? given : JSON.stringify(given ?? {}))

/** A refusal is in a separate field, instead of an answer or after it. */
function withRefusal(content: unknown, refusal: string): string | readonly unknown[] | undefined {
  if (Array.isArray(content)) return refusal === '' ? content : [...content, { type: 'text', text: refusal }]
  return typeof content === 'string' || refusal !== '' ? textOf(content) + refusal : undefined
}

export const contentText = ({ content }: Message): string => {
  if (typeof content === 'string') return content
  return partsOf(content).map(textIn).join('')
}

/** The model's reasoning: in a separate field, or as parts of its answer (Mistral). */
export const thoughtsIn = ({ content, reasoning = '' }: Message): string =>
  reasoning +
  partsOf(content)
    .map(({ type, thinking }) => (type === 'thinking' ? partsOf(thinking).map(textIn).join('') : ''))
    .join('')

interface ReplyPart {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
}

const partsOf = (content: unknown): ReplyPart[] => listOf(content as readonly ReplyPart[])
const textIn = ({ type, text }: ReplyPart) => (type === 'text' ? textOf(text) : '')

/** Tokens and their cost; a cached reply costs nothing. */
export function usageOf(
  { input, output, cached }: TokenCount,
  price: ModelPrice | undefined,
  fromCache: boolean,
): Usage {
  const usage: Usage = {}
  if (input !== undefined) usage.inputTokens = input
  if (output !== undefined) usage.outputTokens = output
  if (cached !== undefined) usage.cachedTokens = cached
  if (price && (input !== undefined || output !== undefined)) {
    const { input: perInput = 0, output: perOutput = 0, cachedInput = perInput } = price
    const fresh = Math.max(0, (input ?? 0) - (cached ?? 0))
    const usd = fresh * perInput + Math.min(cached ?? 0, input ?? 0) * cachedInput + (output ?? 0) * perOutput
    usage.costUsd = fromCache ? 0 : usd / 1_000_000
  }
  return usage
}

/** Token ids and log-probabilities, if the server returns them, as vLLM (`return_token_ids`) and llama.cpp do. */
export function tokensOf(
  { completion, choice, count }: ChatReply,
  { model: tokenizer, tokens }: Pick<ModelDescription, 'model' | 'tokens'>,
  constrained: boolean,
): StepTokens | null {
  const logProbs = listOf(choice.logprobs?.content)
  const ids = idsIn(choice.token_ids) ?? idsIn(logProbs.length > 0 ? logProbs.map(({ id }) => id) : undefined)
  if (ids === undefined || ids.length === 0) return null
  const values = logProbs.map(({ logprob }) => logprob)
  // llama.cpp omits incomplete characters and stop words, so the rest is not what was sampled.
  const isWhole = count.output === undefined || count.output === ids.length
  const known = isWhole && values.length === ids.length && values.every((value) => typeof value === 'number')
  const prompt = idsIn(choice.prompt_token_ids) ?? idsIn(completion.prompt_token_ids)
  return {
    ...{ tokenizer, from: null, tail: prompt ?? new Int32Array(0), completion: ids },
    ...{
      logProbs: known ? Float64Array.from(values as number[]) : null,
      of: tokens === 'processed' ? tokens : 'raw',
      constrained,
    },
    ...(prompt === undefined && { promptUnknown: true as const }),
  }
}

function idsIn(value: unknown): Int32Array | undefined {
  if (!Array.isArray(value)) return undefined
  return value.every((id) => Number.isInteger(id) && (id as number) >= 0)
    ? Int32Array.from(value as number[])
    : undefined
}
