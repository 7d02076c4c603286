import { textOf } from '../export/atif/content.ts'
import { anything, type Check, list, maybe, object, oneOf, orNull, record, text } from '../trajectory/shape-checks.ts'
import type { Message, Step } from '../trajectory/step.ts'
import { gradeOf, type ImportedTrajectory } from './imported-trajectory.ts'

/** A conversation in the format of OpenAI and TRL. */
interface Conversation {
  readonly messages: readonly WireMessage[]
  readonly tools?: readonly object[] | null
  readonly [key: string]: unknown
}

interface WireMessage {
  readonly role: Message['role'] | 'developer'
  readonly content?: unknown
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly WireCall[] | null
  readonly tool_call_id?: string | null
}

interface WireCall {
  readonly id?: string | null
  readonly function: { readonly name: string; readonly arguments?: unknown }
}

const call = object({ id: maybe(orNull(text)), function: object({ name: text }) })
const content: Check = (value, place, say) => {
  if (value !== undefined && value !== null && typeof value !== 'string') list(record(anything))(value, place, say)
}
const conversation = object({
  messages: list(
    object({
      ...{ role: oneOf('system', 'developer', 'user', 'assistant', 'tool'), content },
      ...{ reasoning_content: maybe(orNull(text)), tool_calls: maybe(orNull(list(call))) },
      tool_call_id: maybe(orNull(text)),
    }),
  ),
  tools: maybe(orNull(list(record(anything)))),
})

/** Returns the problems of a line; an empty list if there are none. */
export function checkMessages(value: unknown): string[] {
  const wrong: string[] = []
  conversation(value, '', (words) => wrong.push(words))
  if (wrong.length > 0) return wrong
  const { messages } = value as Conversation
  return messages.some(({ role }) => role === 'assistant') ? [] : ['`messages` has no message of the assistant']
}

/** Converts a conversation. Each message of the assistant becomes a model call; tokens and usage are unknown. */
export function fromMessages(value: Conversation, fallback: string): ImportedTrajectory {
  const { messages, tools, id, reward, success, ...metadata } = value
  const read = messages.map((message, place) => messageOf(message, place))
  const answer = read.findLast(({ role }) => role === 'assistant')
  const asked = read.find(({ role }) => role === 'user')
  const grade = gradeOf(reward, success)
  return {
    id: typeof id === 'string' && id !== '' ? id : fallback,
    ...{ agent: 'imported', input: asked?.content, metadata, answer: textOf(answer?.content) },
    steps: stepsOf(read, tools && tools.length > 0 ? JSON.stringify(tools) : ''),
    ...(grade && { grade }),
    ms: 0,
  }
}

/** Converts a message. Calls without an id get one; results without an id are matched to calls by their order. */
function messageOf({ role, content = null, ...more }: WireMessage, place: number): Message {
  const { reasoning_content: reasoning, tool_calls: calls, tool_call_id: callId } = more
  return {
    role: role === 'developer' ? 'system' : role,
    content,
    ...(typeof reasoning === 'string' && { reasoning }),
    ...(calls && calls.length > 0 && { calls: calls.map((one, position) => callOf(one, `call_${place}_${position}`)) }),
    ...(typeof callId === 'string' && { callId }),
  }
}

const callOf = ({ id, function: { name, arguments: given } }: WireCall, fallback: string) => ({
  id: id || fallback,
  name,
  raw: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
})

function stepsOf(messages: readonly Message[], tools: string): Step[] {
  const steps: Step[] = []
  const open = new Map<string, { step: number; position: number; name: string; raw: string }>()
  let last: { readonly index: number; readonly messages: number } | undefined
  let added: Message[] = []
  for (const [place, message] of messages.entries()) {
    if (message.role !== 'assistant') {
      const [known, asked] = answered(message, open)
      added.push(known)
      if (!asked) continue
      const { step, position, name, raw } = asked
      open.delete(known.callId!)
      const done = { call: { step, position, id: known.callId! }, name, arguments: { raw }, result: message.content }
      steps.push({ index: steps.length, atMs: 0, kind: 'tool', ...done, ms: 0 })
      continue
    }
    const index = steps.length
    steps.push({
      ...{ index, atMs: 0, kind: 'model', role: 'agent', policy: null, server: { model: '' } },
      request: { from: last?.index ?? null, keep: last?.messages ?? 0, added, tools, wire: '' },
      reply: { ...message, wire: '' },
      ...{ finish: message.calls ? 'tool_calls' : 'stop', cached: false, tokens: null, ms: 0, retries: 0 },
      sampling: { temperature: null, topP: null, topK: null, minP: null, other: null },
    })
    for (const [position, { id, name, raw }] of (message.calls ?? []).entries())
      open.set(id, { step: index, position, name, raw })
    last = { index, messages: place + 1 }
    added = []
  }
  // Messages after the last reply were never answered. Keep them as notes.
  for (const message of added) if (message.role !== 'tool') steps.push(note(steps.length, message))
  return steps
}

const note = (index: number, message: Message): Step => ({ index, atMs: 0, kind: 'note', data: { message } })

/** A tool result with its call. If it names no call, it belongs to the first call without a result. */
function answered<Call>(message: Message, open: ReadonlyMap<string, Call>): [Message, Call | undefined] {
  if (message.role !== 'tool') return [message, undefined]
  const callId = message.callId ?? open.keys().next().value
  return callId === undefined ? [message, undefined] : [{ ...message, callId }, open.get(callId)]
}
