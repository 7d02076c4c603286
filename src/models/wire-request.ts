import { messagesOf } from '../trajectory/conversation.ts'
import type { ModelStep, Step } from '../trajectory/step.ts'
import { sentText } from './worker/chat-request.ts'

/**
 * The body of the request that a model step records, byte for byte as it was sent, except for redactions. The reply is
 * `step.reply.wire`. Undefined if it is unknown, because an object of an AI SDK provider made the call.
 */
export function wireRequest({ steps }: { readonly steps: readonly Step[] }, step: ModelStep): string | undefined {
  const { wire, tools } = step.request
  const fields = JSON.parse(wire) as Record<string, unknown>
  if (OBJECT_CALL in fields) return undefined
  const messages = messagesOf(steps, step).slice(0, -1)
  if (!(PROMPT in fields)) return sentText(messages, tools, wire, (index) => tokensUpTo(steps, index))
  // For a completion, the prompt is the only message, or the token ids.
  return JSON.stringify({ ...fields, [PROMPT]: fields[PROMPT] ?? messages[0]?.content ?? promptIds(steps, step) })
}

/** In the `wire` of a completion step; null if the step stores it elsewhere. */
export const PROMPT = 'prompt'
/** In the `wire` of a step of a provider object: the options it was given. */
export const OBJECT_CALL = 'callOptions'

/** The prompt and the completion of a step. */
function tokensUpTo(steps: readonly Step[], index: number): Int32Array {
  const step = steps[index]
  if (step?.kind !== 'model' || step.tokens === null) return new Int32Array(0)
  return Int32Array.from([...promptIds(steps, step), ...step.tokens.completion])
}

function promptIds(steps: readonly Step[], { tokens }: ModelStep): number[] {
  const parts: Int32Array[] = []
  for (let at = tokens; at !== null; ) {
    parts.push(at.tail)
    const earlier = at.from === null ? undefined : steps[at.from]
    if (earlier?.kind !== 'model' || earlier.tokens === null || (earlier.tokens.from ?? -1) >= (at.from ?? -1)) break
    parts.push(earlier.tokens.completion)
    at = earlier.tokens
  }
  return parts.reverse().flatMap((ids) => [...ids])
}
