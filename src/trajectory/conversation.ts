import type { Message, ModelStep, Step, ToolStep } from './step.ts'

/**
 * The messages of a model step: those of its request, and then its reply. A request that continues an earlier step keeps the first of
 * that step's messages, its reply included.
 */
export function messagesOf(steps: readonly Step[], step: ModelStep): Message[] {
  const line: ModelStep[] = [step]
  for (let { from } = step.request; from !== null; ) {
    const earlier = steps[from]
    // Only what came before can be continued, so this ends.
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

/** A call that a model asked for, with what came of it. */
export interface ToolCall {
  /** The model step that asked for it, and its place among that step's calls. */
  readonly step: number
  readonly position: number
  readonly id: string
  readonly name: string
  /** The arguments, as the model wrote them. */
  readonly raw: string
  /** Undefined: nobody ran it. */
  readonly result: (Step & ToolStep) | undefined
}

/** The call that a tool step answers; undefined: the agent's own code called, or it names a call that there is not. */
export function callOf(steps: readonly Step[], { call, index }: Step & ToolStep): Omit<ToolCall, 'result'> | undefined {
  if (call === null || call.step >= index) return undefined
  const asked = steps[call.step]
  const found = asked?.kind === 'model' ? asked.reply.calls?.[call.position] : undefined
  return found?.id === call.id ? { step: call.step, position: call.position, ...found } : undefined
}

/** All calls of tools that models asked for, in their order. */
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
