import type { Message } from '../../trajectory/step.ts'
import type { AssistantPart, PromptMessage, ToolOutput, ToolResultPart } from '../language-model.ts'
import { contentText, thoughtsIn } from './chat-reply.ts'
import { contentPart } from './content-part.ts'

/** Finds an earlier reply of the model by the id of one of its tool calls. */
export type EarlierReply = (callId: string) => Message | undefined

/**
 * Converts the messages of an AI SDK prompt. The SDK parses and re-serializes the arguments of tool calls; the model's
 * original text is restored, because both a server's cache and a learner need the exact earlier conversation.
 */
export const messagesOf = (prompt: readonly PromptMessage[], earlier: EarlierReply): Message[] =>
  prompt.flatMap((message) => messageOf(message, earlier))

function messageOf(message: PromptMessage, earlier: EarlierReply): Message | Message[] {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content }
    case 'user': {
      const [first] = message.content
      const isText = message.content.length === 1 && first!.type === 'text'
      return { role: 'user', content: isText ? (first as { text: string }).text : message.content.map(contentPart) }
    }
    case 'assistant':
      return assistantMessage(message.content, earlier)
    case 'tool':
      return message.content
        .filter((part): part is ToolResultPart => part.type === 'tool-result')
        .map(({ toolCallId, output }) => ({ role: 'tool', content: outputText(output), callId: toolCallId }))
    default:
      return message satisfies never
  }
}

function assistantMessage(parts: readonly AssistantPart[], earlier: EarlierReply): Message {
  let text = ''
  let reasoning = ''
  const calls: { id: string; name: string; raw: string }[] = []
  for (const part of parts) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'reasoning') reasoning += part.text
    else if (part.type === 'tool-call') {
      const { toolCallId: id, toolName: name, input } = part
      const known = earlier(id)?.calls?.find((call) => call.id === id && call.name === name)
      calls.push(known ?? { id, name, raw: argumentsText(input) })
    }
  }
  const original = calls.length === 0 ? undefined : earlier(calls[0]!.id)
  if (original && isSame(original, text, reasoning, calls)) return original
  return {
    role: 'assistant',
    content: calls.length > 0 ? text || null : text,
    ...(reasoning !== '' && { reasoning }),
    ...(calls.length > 0 && { calls }),
  }
}

/**
 * Whether the message is the model's whole reply. If the caller removed a call or the reasoning, it must stay removed.
 */
const isSame = (original: Message, text: string, reasoning: string, calls: readonly { id: string }[]): boolean =>
  contentText(original) === text &&
  thoughtsIn(original) === reasoning &&
  original.calls?.length === calls.length &&
  original.calls.every((call, index) => call === calls[index])

/** Arguments not written by a model here: a string that is JSON is used as is, like the SDK's providers do. */
function argumentsText(input: unknown): string {
  if (typeof input !== 'string') return input === undefined ? '{}' : jsonText(input)
  try {
    JSON.parse(input)
    return input
  } catch {
    return JSON.stringify(input)
  }
}

/** JSON in which big integers are strings. */
const jsonText = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner))

function outputText(output: ToolOutput): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value
    case 'execution-denied':
      return output.reason ?? 'Tool call execution denied.'
    default:
      return jsonText(output.value)
  }
}

/** A message in wire format. */
export function wireMessage({ role, content, reasoning, calls, callId }: Message): object {
  if (role === 'tool') return { role, tool_call_id: callId, content }
  return {
    role,
    content,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls && {
      tool_calls: calls.map(({ id, name, raw }) => ({ id, type: 'function', function: { name, arguments: raw } })),
    }),
  }
}
