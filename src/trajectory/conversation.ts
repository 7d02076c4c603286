import type { Message, ModelStep, Step, ToolStep } from './step.ts'

/**
 * The messages of a model step: its request, then its reply. A request that continues an earlier step keeps the first messages
 * of that step, which include its reply.
 */
export function messagesOf(steps: readonly Step[], step: ModelStep): Message[] {
  const line: ModelStep[] = [step]
  for (let { from } = step.request; from !== null; ) {
    const earlier = steps[from]
    // A step can only continue an earlier one, so this loop ends.
    if (earlier?.kind !== 'model' || (earlier.request.from ?? -1) >= from) break
    line.push(earlier)
    from = earlier.request.from
  }
  let messages: Message[] = []
  for (const { request, reply } of line.reverse()) {
    messages.length = Math.min(messages.length, request.from === null ? 0 : request.keep)
    messages = messages.concat(request.added, reply)
  }
  return messages
}

/** A tool call that a model made, with its result. */
export interface ToolCall {
  /** The model step that made the call, and the position among its calls. */
  readonly step: number
  readonly position: number
  readonly id: string
  readonly name: string
  /** The arguments as the model wrote them. */
  readonly raw: string
  /** Undefined if the call was not executed. */
  readonly result: (Step & ToolStep) | undefined
}

/** The call that a tool step answers. Undefined: the agent's own code made it, or the reference is invalid. */
export function callOf(steps: readonly Step[], { call, index }: Step & ToolStep): Omit<ToolCall, 'result'> | undefined {
  if (call === null || call.step >= index) return undefined
  const asked = steps[call.step]
  const found = asked?.kind === 'model' ? asked.reply.calls?.[call.position] : undefined
  return found?.id === call.id ? { step: call.step, position: call.position, ...found } : undefined
}

/** All tool calls that models made, in order. */
export function toolCalls({ steps }: { readonly steps: readonly Step[] }): ToolCall[] {
  const results = new Map<string, Step & ToolStep>()
  for (const step of steps) {
    if (step.kind !== 'tool') continue
    const call = callOf(steps, step)
    if (call) results.set(`${call.step}.${call.position}`, step)
  }
  return steps.flatMap((step) =>
    step.kind === 'model'
      ? (step.reply.calls ?? []).map(({ id, name, raw }, position) => {
          const result = results.get(`${step.index}.${position}`)
          return { step: step.index, position, id, name, raw, result }
        })
      : [],
  )
}
