import type { Message } from '../../trajectory/step.ts'
import type { AssistantPart, FilePart, PromptMessage, ToolOutput, ToolResultPart } from '../language-model.ts'

/** A reply that the model gave earlier, by the id of one of its calls. */
export type EarlierReply = (callId: string) => Message | undefined

/**
 * The messages of a prompt of the AI SDK. The SDK parses the arguments of calls and writes them anew; the ones that the model wrote are
 * put back, because a server's cache and a learner both need a conversation that goes on as it began.
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
      calls.push({ id, name, raw: typeof input === 'string' ? input : JSON.stringify(input ?? {}) })
    }
  }
  const said = calls.length === 0 ? undefined : earlier(calls[0]!.id)
  if (said && isSame(said, text, calls)) return said
  return {
    role: 'assistant',
    content: calls.length > 0 ? text || null : text,
    ...(reasoning !== '' && { reasoning }),
    ...(calls.length > 0 && { calls }),
  }
}

/** Whether this is what the model said, but for how the SDK writes arguments. */
const isSame = (said: Message, text: string, calls: readonly { id: string; name: string }[]): boolean =>
  (said.content ?? '') === text &&
  said.calls?.length === calls.length &&
  said.calls.every(({ id, name }, place) => id === calls[place]!.id && name === calls[place]!.name)

function outputText(output: ToolOutput): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value
    case 'execution-denied':
      return output.reason ?? 'Tool call execution denied.'
    default:
      return JSON.stringify(output.value)
  }
}

function contentPart(part: { type: 'text'; text: string } | FilePart): object {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { data, mediaType, filename } = part
  const kind = mediaType.split('/', 1)[0]
  if (data.type === 'text') return { type: 'text', text: data.text }
  if (data.type === 'reference') return { type: 'file', file: { file_id: Object.values(data.reference)[0] } }
  if (kind === 'image') return { type: 'image_url', image_url: { url: urlOf(data, mediaType) } }
  if (kind === 'video') return { type: 'video_url', video_url: { url: urlOf(data, mediaType) } }
  if (data.type === 'url') throw unsupported(`a file of the type ${mediaType} by its URL`)
  if (kind === 'text') return { type: 'text', text: Buffer.from(base64(data.data), 'base64').toString('utf8') }
  if (mediaType === 'application/pdf')
    return { type: 'file', file: { filename: filename ?? 'document.pdf', file_data: urlOf(data, mediaType) } }
  const format = AUDIO[mediaType]
  if (format === undefined) throw unsupported(`a file of the type ${mediaType}`)
  return { type: 'input_audio', input_audio: { data: base64(data.data), format } }
}

const AUDIO: Readonly<Record<string, string>> = { 'audio/wav': 'wav', 'audio/mp3': 'mp3', 'audio/mpeg': 'mp3' }

const unsupported = (what: string) => new TypeError(`chat completions cannot send ${what}; give it in another way`)

type Sent = Extract<FilePart['data'], { type: 'data' | 'url' }>

const urlOf = (data: Sent, mediaType: string) =>
  data.type === 'url'
    ? String(data.url)
    : `data:${mediaType === 'image/*' ? 'image/png' : mediaType};base64,${base64(data.data)}`

const base64 = (data: Uint8Array | string) => (typeof data === 'string' ? data : Buffer.from(data).toString('base64'))

/** A message as it goes over the wire. */
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
