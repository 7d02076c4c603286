import { branchField } from '../../models/worker/chat.ts'
import { conversationsOf } from '../../models/worker/conversations.ts'
import { recordStep } from '../../trajectory/record.ts'
import type { ToolStep } from '../../trajectory/step.ts'
import { asSendable } from './sendable-result.ts'

/** The parts of an AI SDK tool that we use: `tool({ … })` makes one. */
export interface LlmTool {
  readonly description?: unknown
  readonly inputSchema: unknown
  // biome-ignore lint/suspicious/noExplicitAny: the input that the tool's schema describes
  readonly execute?: ((input: any, options: any) => unknown) | undefined
}

export type LlmTools = Readonly<Record<string, LlmTool>>

interface CallOptions {
  readonly toolCallId: string
  readonly abortSignal?: AbortSignal
}

/**
 * Wraps tools: each call is recorded and has a timeout. If a tool ignores its abort signal, it is not awaited: the call fails
 * for the model, and a later result is ignored.
 */
export function recordedTools(ctx: object, tools: LlmTools, timeoutMs: number): LlmTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      const { execute } = tool
      if (typeof execute !== 'function') return [name, tool]
      const run = (input: unknown, options: CallOptions) =>
        runRecorded(ctx, name, input, options, timeoutMs, async (signal) => {
          const result = await settled(await execute.call(tool, input, { ...options, abortSignal: signal }))
          if (!('toModelOutput' in tool)) checkJson(name, result)
          return result
        })
      return [name, { ...tool, execute: run }]
    }),
  )
}

async function runRecorded(
  ctx: object,
  name: string,
  input: unknown,
  { toolCallId, abortSignal }: CallOptions,
  timeoutMs: number,
  execute: (signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  const began = performance.now()
  const record = (end: Pick<ToolStep, 'result' | 'error'>) =>
    recordCall(ctx, name, input, toolCallId, Math.round((performance.now() - began) * 1000) / 1000, end)
  try {
    const result = await raced(name, timeoutMs, abortSignal, execute)
    record({ result: asSendable(result) })
    return result
  } catch (error) {
    if (!abortSignal?.aborted) record({ error: wordsOf(error) })
    throw error
  }
}

/** Checks that the result can be sent to the model as JSON. If it cannot, the tool call fails, not the task. */
function checkJson(name: string, result: unknown): void {
  try {
    JSON.stringify(result)
  } catch (cause) {
    const why = (cause as Error).message.split('\n', 1)[0]
    throw new TypeError(`the result of tool '${name}' cannot be serialized as JSON (${why}); return plain data`, {
      cause,
    })
  }
}

const wordsOf = (error: unknown) =>
  error instanceof Error ? { name: error.name, message: error.message } : { name: 'Error', message: String(error) }

/** A tool may yield preliminary results; the last one counts. */
async function settled(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
  let last: unknown
  for await (const part of result as AsyncIterable<unknown>) last = part
  return last
}

async function raced<Result>(
  name: string,
  timeoutMs: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const tooLong = new AbortController()
  const signal = outer ? AbortSignal.any([outer, tooLong.signal]) : tooLong.signal
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    timer = setTimeout(
      () => tooLong.abort(new DOMException(`tool '${name}' took longer than ${timeoutMs} ms`, 'TimeoutError')),
      timeoutMs,
    )
  })
  try {
    return await Promise.race([work(signal), over])
  } finally {
    clearTimeout(timer)
    over.catch(() => {})
  }
}

function recordCall(
  ctx: object,
  name: string,
  value: unknown,
  callId: string,
  ms: number,
  end: Pick<ToolStep, 'result' | 'error'>,
): void {
  const conversations = conversationsOf(ctx)
  const asked = conversations.asked(callId)
  const position = asked?.message.calls?.findIndex(({ id }) => id === callId) ?? -1
  const call = asked && position >= 0 ? { step: asked.step, position, id: callId } : null
  const raw = asked?.message.calls?.[position]?.raw ?? JSON.stringify(value)
  conversations.answered(callId)
  const branch = branchField(asked && conversations.branchOfStep(asked.step))
  void recordStep(ctx, {
    kind: 'tool',
    call,
    name,
    arguments: { raw, value: asSendable(value) },
    ...end,
    ms,
    ...branch,
  })
}
