import { ManyworldsError } from '../../errors.ts'
import type { Message } from '../../trajectory/step.ts'
import { type TokenCount, textOf } from '../completion.ts'
import type {
  CallOptions,
  CallUsage,
  Content,
  FinishReason,
  GenerateResult,
  LanguageModel,
  StreamPart,
  StreamResult,
} from '../language-model.ts'
import { type ChatOptions, callsOf, chat, describe, underWay } from './chat.ts'
import { messagesOf } from './chat-messages.ts'
import { type ChatReply, contentText, thoughtsIn } from './chat-reply.ts'
import { fieldsOf, toolsOf } from './chat-request.ts'
import { conversationsOf } from './conversations.ts'
import { generateWithObject } from './object-model.ts'

/**
 * A model of the run as an AI SDK language model for this task: pass it to `generateText`, `streamText` or an agent.
 * Calls go through the driver, or directly with a permit from the driver. Each is recorded as a step of the task.
 */
export function languageModel(ctx: object, name: string, options: ChatOptions = {}): LanguageModel {
  if (typeof name !== 'string' || name === '')
    throw new ManyworldsError(
      'MODEL_UNKNOWN',
      "the argument of ctx.model() must be the name of one of the run's `models`",
    )
  const generate = async (call: CallOptions): Promise<GenerateResult> => {
    const description = await describe(ctx, name)
    if (description.kind === 'object') return generateWithObject(ctx, name, description, call, options)
    const { fields: asked, warnings, notStrict } = fieldsOf(description, call)
    if (notStrict !== undefined) callsOf(ctx).notStrict(name, notStrict)
    const messages = messagesOf(call.prompt, (id) => conversationsOf(ctx).asked(id)?.message)
    const { trained } = options
    const fields = trained ? { ...asked, seed: trained.seed(), ...continued(messages) } : asked
    const request = { messages, tools: toolsOf(call), fields }
    const { reply, sent, answer } = await chat(ctx, name, description, request, {
      ...options,
      signal: call.abortSignal,
    })
    return { ...resultOf(reply), warnings, request: { body: sent }, response: responseOf(reply, answer.body) }
  }
  return {
    specificationVersion: 'v4',
    provider: 'manyworlds',
    modelId: name,
    supportedUrls: { 'image/*': [/^https?:\/\//] },
    doGenerate: (call) => underWay(ctx, name, call.abortSignal, () => generate(call)),
    // An answer is stored before its task gets it, so it cannot be streamed: it comes in one piece.
    doStream: (call) => underWay(ctx, name, call.abortSignal, async () => streamOf(await generate(call))),
  }
}

/** Continues an answer that the prompt has begun. vLLM, SGLang and the sidecar support these fields. */
const continued = (messages: readonly Message[]): object =>
  messages.at(-1)?.role === 'assistant' ? { continue_final_message: true, add_generation_prompt: false } : {}

/** Converts a reply to a result of the AI SDK. */
export function resultOf({
  message,
  choice,
  count,
}: ChatReply): Pick<GenerateResult, 'content' | 'finishReason' | 'usage'> {
  const content: Content[] = []
  const thoughts = thoughtsIn(message)
  if (thoughts !== '') content.push({ type: 'reasoning', text: thoughts })
  const text = contentText(message)
  if (text !== '') content.push({ type: 'text', text })
  for (const { id, name, raw } of message.calls ?? [])
    content.push({ type: 'tool-call', toolCallId: id, toolName: name, input: raw })
  return { content, finishReason: finishOf(choice, content), usage: usageOf(count) }
}

function finishOf({ finish_reason, message }: ChatReply['choice'], content: readonly Content[]): FinishReason {
  const raw = typeof finish_reason === 'string' ? finish_reason : undefined
  const isRefused = textOf(message?.refusal) !== ''
  const unified = raw === 'stop' && isRefused ? 'content-filter' : (FINISH[raw ?? ''] ?? 'other')
  // Some servers report `stop`, or nothing, for tool calls; the agent's loop would then end without making them.
  const isCalling = content.some(({ type }) => type === 'tool-call')
  return { unified: isCalling && !CUT.includes(unified) ? 'tool-calls' : unified, raw }
}

/** Tool calls with these finish reasons may be incomplete. */
const CUT: readonly FinishReason['unified'][] = ['length', 'content-filter']

const FINISH: Readonly<Record<string, FinishReason['unified']>> = {
  stop: 'stop',
  length: 'length',
  content_filter: 'content-filter',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
}

const usageOf = ({ input, output, cached, reasoning }: TokenCount): CallUsage => ({
  inputTokens: {
    total: input,
    noCache: input === undefined ? undefined : Math.max(0, input - (cached ?? 0)),
    cacheRead: cached,
    cacheWrite: undefined,
  },
  outputTokens: {
    total: output,
    text: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
    reasoning,
  },
})

function responseOf({ completion }: ChatReply, body: string): NonNullable<GenerateResult['response']> {
  const { id, model } = completion
  return {
    ...(typeof id === 'string' && { id }),
    ...(typeof model === 'string' && { modelId: model }),
    body,
  }
}

function streamOf({ content, finishReason, usage, warnings, request, response }: GenerateResult): StreamResult {
  const { id, timestamp, modelId } = response ?? {}
  const parts: StreamPart[] = [
    { type: 'stream-start', warnings },
    {
      type: 'response-metadata',
      ...(id !== undefined && { id }),
      ...(timestamp && { timestamp }),
      ...(modelId !== undefined && { modelId }),
    },
    ...content.flatMap((part, index) => partsOf(part, String(index))),
    { type: 'finish', usage, finishReason },
  ]
  const stream = new ReadableStream<StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
  return { stream, ...(request && { request }) }
}

function partsOf(part: Content, id: string): StreamPart[] {
  if (part.type === 'tool-call') {
    const { toolCallId, toolName, input } = part
    return [
      { type: 'tool-input-start', id: toolCallId, toolName },
      { type: 'tool-input-delta', id: toolCallId, delta: input },
      { type: 'tool-input-end', id: toolCallId },
      part,
    ]
  }
  const { type, text } = part
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id },
  ]
}
