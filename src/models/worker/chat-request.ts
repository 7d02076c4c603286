import type { Message, Sampling } from '../../trajectory/step.ts'
import type { CallOptions, GenerateResult } from '../language-model.ts'
import { jsonFormat } from '../response-format.ts'
import { withoutSecretFields } from '../secret-fields.ts'
import type { ModelDescription } from '../settings.ts'
import { wireMessage } from './chat-messages.ts'
import type { CarriedTokens } from './conversations.ts'

/** The parts of a request, which are recorded and from which the body is made. */
export interface ChatRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly object[]
  /** All other fields of the body, with the model first. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** A field of bodies: the token ids of the first messages. Sent only to servers that support it. */
const PREFIX = 'prompt_prefix'

/** The exact text of a body. It can be reproduced from a recorded step: see `wireOf`. */
export const bodyText = ({ messages, tools, fields }: ChatRequest, carried?: CarriedTokens): string => {
  const { model, ...rest } = fields
  const prefix = carried && { [PREFIX]: { messages: carried.messages, token_ids: [...carried.ids] } }
  return JSON.stringify({
    ...{ model, messages: messages.map(wireMessage) },
    ...(tools.length > 0 && { tools }),
    ...{ ...rest, ...prefix },
  })
}

/**
 * The part of a request stored as the step's `wire`: everything except messages, tools and carried tokens, which are
 * stored elsewhere, and except the values of fields that look like secrets.
 */
export const wireOf = (request: ChatRequest, carried?: CarriedTokens): string => {
  const fields = withoutSecretFields(request.fields)
  return JSON.stringify(carried ? { ...fields, [PREFIX]: { messages: carried.messages, step: carried.step } } : fields)
}

/** Reproduces the text that was sent from the recorded parts. `idsOf`: the tokens of a step, prompt and completion. */
export function sentText(
  messages: readonly Message[],
  tools: string,
  wire: string,
  idsOf: (step: number) => Int32Array,
): string {
  const { [PREFIX]: prefix, ...fields } = JSON.parse(wire) as Record<string, unknown>
  const { step, messages: kept } = (prefix ?? {}) as Partial<CarriedTokens>
  const carried =
    step === undefined || kept === undefined ? undefined : { step, messages: kept as number, ids: idsOf(step) }
  return bodyText({ messages, tools: tools === '' ? [] : (JSON.parse(tools) as object[]), fields }, carried)
}

type Warning = GenerateResult['warnings'][number]

/** The fields of a body for a call of the AI SDK. `notStrict`: why its schema is sent without `strict`. */
export function fieldsOf(
  description: ModelDescription,
  options: CallOptions,
): { fields: Record<string, unknown>; warnings: Warning[]; notStrict: string | undefined } {
  const { maxOutputTokens, temperature, topP, topK, presencePenalty, frequencyPenalty } = options
  const { stopSequences, seed, responseFormat, reasoning, providerOptions } = options
  // These four have their own names in the SDK; the others are passed to the server unchanged.
  const { reasoningEffort, textVerbosity, user, strictJsonSchema, ...own } = {
    ...pick(providerOptions?.openaiCompatible),
    ...providerOptions?.manyworlds,
  } as Record<string, unknown>
  const warnings: Warning[] = []
  if (options.tools?.some(({ type }) => type === 'provider'))
    warnings.push({ type: 'unsupported', feature: "tools that the provider runs; define the tool's `execute` instead" })
  const { format, notStrict } = formatOf(responseFormat, strictJsonSchema)
  const fields: Record<string, unknown> = {
    model: description.model,
    ...(description.tokens && { logprobs: true, top_logprobs: 1, return_token_ids: true }),
    ...description.extraBody,
    ...given({
      max_tokens: maxOutputTokens,
      temperature,
      top_p: topP,
      top_k: topK,
      presence_penalty: presencePenalty,
      frequency_penalty: frequencyPenalty,
      stop: stopSequences && stopSequences.length > 0 ? stopSequences : undefined,
      seed,
      reasoning_effort: reasoningEffort ?? (reasoning === 'provider-default' ? undefined : reasoning),
      verbosity: textVerbosity,
      user,
      response_format: format,
      tool_choice: choiceOf(options),
    }),
    ...own,
  }
  return { fields, warnings, notStrict }
}

const pick = (options: Record<string, unknown> = {}) => {
  const { reasoningEffort, textVerbosity, user, strictJsonSchema } = options
  return given({ reasoningEffort, textVerbosity, user, strictJsonSchema })
}

export const toolsOf = ({ tools = [] }: CallOptions): object[] =>
  tools.flatMap((tool) => {
    if (tool.type !== 'function') return []
    const { name, description, inputSchema: parameters, strict } = tool
    return [{ type: 'function', function: { name, ...given({ description }), parameters, ...given({ strict }) } }]
  })

function formatOf(
  asked: CallOptions['responseFormat'],
  strict: unknown,
): { readonly format?: object; readonly notStrict: string | undefined } {
  if (asked?.type !== 'json') return { notStrict: undefined }
  const { schema, name, description } = asked
  if (schema === undefined) return { format: { type: 'json_object' }, notStrict: undefined }
  return jsonFormat(schema, { name, description, strict })
}

function choiceOf({ tools, toolChoice }: CallOptions): unknown {
  // Servers refuse a tool choice without tools.
  if (toolChoice === undefined || !tools?.some(({ type }) => type === 'function')) return undefined
  return toolChoice.type === 'tool' ? { type: 'function', function: { name: toolChoice.toolName } } : toolChoice.type
}

/** Removes undefined values. */
const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** The sampling settings in the body. */
export function samplingOf({ fields }: ChatRequest): Sampling {
  const { model: _, temperature, top_p, top_k, min_p, seed, max_tokens, max_completion_tokens, stop, ...other } = fields
  const most = numberIn(max_completion_tokens) ?? numberIn(max_tokens)
  const stops = typeof stop === 'string' ? [stop] : Array.isArray(stop) ? (stop as string[]) : undefined
  return {
    temperature: numberIn(temperature),
    topP: numberIn(top_p),
    topK: numberIn(top_k),
    minP: numberIn(min_p),
    ...(numberIn(seed) !== null && { seed: seed as number }),
    ...(most !== null && { maxTokens: most }),
    ...(stops && { stop: stops }),
    other: withoutSecretFields(other) as Sampling['other'],
  }
}

const numberIn = (value: unknown): number | null => (typeof value === 'number' ? value : null)

/** The usual length of a reply, if the user sets no maximum. */
const USUAL_OUTPUT = 1024
/** English text has about four characters per token; code and other languages have fewer. */
const CHARS_PER_TOKEN = 3

/** Images have 100 to 1,500 tokens, whatever their bytes; pages of documents and seconds of audio are not counted here. */
const TOKENS_PER_FILE = 1500

/** The estimated maximum number of tokens of a call, which the limiter reserves. `carried`: the number of token ids sent along. */
export function mostTokens(request: ChatRequest, carried = 0): number {
  const { maxTokens = USUAL_OUTPUT } = samplingOf(request)
  const size: Size = { chars: 0, files: 0 }
  for (const { content, reasoning, calls } of request.messages) {
    addContent(size, content)
    size.chars += reasoning?.length ?? 0
    for (const { name, raw } of calls ?? []) size.chars += name.length + raw.length
  }
  if (request.tools.length > 0) size.chars += JSON.stringify(request.tools).length
  // The ids replace some of the messages.
  const text = Math.max(Math.ceil(size.chars / CHARS_PER_TOKEN), carried)
  return text + size.files * TOKENS_PER_FILE + maxTokens
}

interface Size {
  chars: number
  files: number
}

/** Content is a text, or parts: texts, and images or other files, by URL or as base64. */
function addContent(size: Size, content: unknown): void {
  if (typeof content === 'string') {
    if (content.startsWith('data:')) size.files++
    else size.chars += content.length
  } else if (Array.isArray(content))
    for (const part of content as { readonly text?: unknown; readonly thinking?: unknown }[])
      if (typeof part?.text === 'string') size.chars += part.text.length
      else if (part?.thinking !== undefined) addContent(size, part.thinking)
      else size.files++
}
