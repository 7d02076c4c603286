import { wireMessage } from '../../models/worker/chat-messages.ts'
import { messagesOf } from '../../trajectory/conversation.ts'
import type { ModelStep, Step } from '../../trajectory/step.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { REASONS, type Reason, UNTRAINABLE } from './left-out.ts'

/** A line for supervised fine-tuning, in the format of OpenAI and TRL. */
export interface Conversation {
  readonly messages: readonly object[]
  readonly tools?: readonly object[]
}

/** The conversations of the agent's model, each to its end. Conversations with a common prefix both contain it. */
export function conversationsOf({ steps, ending }: Trajectory): readonly Conversation[] | Reason {
  const calls = steps.filter((step): step is Step & ModelStep => step.kind === 'model' && step.role === 'agent')
  if (ending.kind === 'failed' || ending.kind === 'cancelled') return REASONS.unfinished
  if (calls.length === 0) return REASONS.noModel
  if (calls.some(({ redacted }) => redacted)) return UNTRAINABLE.REDACTED
  const continued = new Set(calls.flatMap((call) => continuedBy(steps, call)))
  try {
    return calls.filter(({ index }) => !continued.has(index)).map((call) => conversation(steps, call))
  } catch (error) {
    if (error instanceof SyntaxError) return REASONS.unreadableTools
    throw error
  }
}

/** The call whose reply is part of this call's conversation. */
function continuedBy(steps: readonly Step[], { request }: ModelStep): number[] {
  const { from, keep } = request
  const earlier = from === null ? undefined : steps[from]
  return earlier?.kind === 'model' && keep >= messagesOf(steps, earlier).length ? [from!] : []
}

function conversation(steps: readonly Step[], call: Step & ModelStep): Conversation {
  const { tools } = call.request
  const messages = messagesOf(steps, call).map(wireMessage)
  return { messages, ...(tools !== '' && { tools: JSON.parse(tools) as object[] }) }
}
