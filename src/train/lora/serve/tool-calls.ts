/** A tool call written by a model. */
export interface ToolCall {
  readonly name: string
  /** JSON of an object. */
  readonly arguments: string
}

export interface ParsedReply {
  /** The reply without its calls. */
  readonly text: string
  readonly calls: readonly ToolCall[]
}

const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'
/** A reply with more calls is a model repeating itself. */
const MAX_CALLS = 64

/**
 * Parses calls in the format of Hermes and Qwen: `<tool_call>{"name": …, "arguments": …}</tool_call>`. Invalid calls
 * stay text. The last call may lack its closing tag. Takes linear time for any input.
 */
export function callsIn(reply: string): ParsedReply {
  const calls: ToolCall[] = []
  let text = ''
  let at = 0
  while (calls.length < MAX_CALLS) {
    const open = reply.indexOf(OPEN, at)
    if (open < 0) break
    const close = reply.indexOf(CLOSE, open)
    const end = close < 0 ? reply.length : close
    // A model may repeat the opening tag before the call.
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
    // Some models write the arguments as a JSON string.
    const args = typeof given === 'string' ? (JSON.parse(given) as unknown) : given
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return undefined
    return { name, arguments: JSON.stringify(args) }
  } catch {
    return undefined
  }
}
