/** A call as a model wrote it. */
export interface ToolCall {
  readonly name: string
  /** JSON of an object. */
  readonly arguments: string
}

export interface SaidAndCalled {
  /** What is not a call. */
  readonly text: string
  readonly calls: readonly ToolCall[]
}

const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'
/** More calls in one reply are a model that repeats itself. */
const MOST_CALLS = 64

/**
 * Calls as Hermes and Qwen write them: `<tool_call>{"name": …, "arguments": …}</tool_call>`. What is not valid stays text. The last call may
 * lack its end. Each character is looked at a fixed number of times, whatever the model wrote.
 */
export function callsIn(reply: string): SaidAndCalled {
  const calls: ToolCall[] = []
  let text = ''
  let at = 0
  while (calls.length < MOST_CALLS) {
    const open = reply.indexOf(OPEN, at)
    if (open < 0) break
    const close = reply.indexOf(CLOSE, open)
    const end = close < 0 ? reply.length : close
    // A model may open a call again before it writes it.
    const start = reply.lastIndexOf(OPEN, end - 1)
    const call = callOf(reply.slice(start + OPEN.length, end))
    const next = close < 0 ? end : close + CLOSE.length
    text += call ? reply.slice(at, open) : reply.slice(at, next)
    if (call) calls.push(call)
    at = next
  }
  text += reply.slice(at)
  return calls.length === 0 ? { text: reply, calls } : { text: text.trim(), calls }
}

function callOf(json: string): ToolCall | undefined {
  try {
    const { name, arguments: given = {} } = JSON.parse(json) as { name?: unknown; arguments?: unknown }
    if (typeof name !== 'string' || name === '') return undefined
    // Some models write the arguments as a text that is JSON.
    const args = typeof given === 'string' ? (JSON.parse(given) as unknown) : given
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return undefined
    return { name, arguments: JSON.stringify(args) }
  } catch {
    return undefined
  }
}
