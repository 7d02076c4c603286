import type { Message } from '../../trajectory/step.ts'
import type { CallOptions, Content, GenerateResult } from '../language-model.ts'
import { withoutSecretFields } from '../secret-fields.ts'
import { withUrlsAsTexts } from '../sent-urls.ts'
import type { ModelDescription } from '../settings.ts'
import { OBJECT_CALL } from '../wire-request.ts'
import { type ChatOptions, callsOf, filtered, record, recordResults } from './chat.ts'
import { messagesOf } from './chat-messages.ts'
import { usageOf } from './chat-reply.ts'
import { fieldsOf, toolsOf } from './chat-request.ts'
import { conversationsOf } from './conversations.ts'

/** Calls a provider object in the driver. The options it was given are recorded, because what it sends is unknown. */
export async function generateWithObject(
  ctx: object,
  name: string,
  description: ModelDescription,
  { abortSignal, ...call }: CallOptions,
  { role = 'agent', recordsTools = false, spent, policy }: ChatOptions,
): Promise<GenerateResult> {
  const { prompt, tools: _, headers: __, ...options } = call
  const messages = messagesOf(prompt, (id) => conversationsOf(ctx).asked(id)?.message)
  recordResults(ctx, messages, recordsTools)
  const request = { messages, tools: toolsOf(call), fields: fieldsOf(description, call).fields }
  const answer = await callsOf(ctx).callObject({ model: name, options: withUrlsAsTexts(call) }, abortSignal)
  const { content, finishReason, usage, response } = answer.result
  const wire = response?.body === undefined ? content : response.body
  const { inputTokens, outputTokens } = usage
  record(ctx, {
    ...{ name, description, role, request, tokens: null, policy },
    wire: JSON.stringify({ model: description.model, [OBJECT_CALL]: withoutSecretFields(options) }),
    answer: { ...answer, body: typeof wire === 'string' ? wire : (JSON.stringify(wire) ?? '') },
    reply: {
      message: replyOf(content),
      finish: finishReason.raw ?? finishReason.unified,
      count: {
        ...{ input: inputTokens.total, output: outputTokens.total },
        ...{ cached: inputTokens.cacheRead, reasoning: outputTokens.reasoning },
      },
      completion: { model: response?.modelId, id: response?.id },
      choice: {},
    },
  })
  spent?.(
    usageOf(
      { input: inputTokens.total, output: outputTokens.total, cached: undefined, reasoning: undefined },
      description.price,
      answer.cached,
    ),
  )
  if (finishReason.unified === 'content-filter') throw filtered(name)
  return answer.result
}

function replyOf(content: readonly Content[]): Message {
  let text = ''
  let reasoning = ''
  const calls: { id: string; name: string; raw: string }[] = []
  for (const part of content) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'reasoning') reasoning += part.text
    else if (part.type === 'tool-call') calls.push({ id: part.toolCallId, name: part.toolName, raw: part.input })
  }
  return {
    role: 'assistant',
    content: calls.length > 0 ? text || null : text,
    ...(reasoning !== '' && { reasoning }),
    ...(calls.length > 0 && { calls }),
  }
}
