import type { ToolCall } from './tools.ts'

/** The result of `parseAction`. */
export type ParsedAction =
  /** `raw`: the arguments as they were written. */
  | (ToolCall & { readonly kind: 'call'; readonly raw: string })
  /** `reason`: what is wrong, for the author of the text. */
  | { readonly kind: 'unreadable'; readonly reason: string }

/** The syntax of a call, for messages and prompts. */
export const CALL_FORMS = 'use_tool[NAME] with ARGUMENT[VALUE], or {"tool": "NAME", "arguments": {…}}'

/** Longer texts are rejected. */
const MAX_CHARS = 256 * 1024
const MAX_NAME_CHARS = 200
/** More deeply nested arguments are rejected. */
const MAX_DEPTH = 100

const BRACKETS = 'use_tool['
const FENCE = '```'

/**
 * Parses a tool call in the text of a model: `use_tool[search] with query[…]`, or JSON such as
 * `{"tool": "search", "arguments": {…}}`, alone, in a fenced block or within prose. The first call counts. Arguments in
 * brackets are texts; they may contain balanced brackets, and `\[`, `\]` and `\\`. Never throws. Takes linear time.
 *
 * @example
 * parseAction('use_tool[search] with query[cats [2024]] limit[5]')
 * // { kind: 'call', tool: 'search', arguments: { query: 'cats [2024]', limit: '5' }, raw: 'query[cats [2024]] limit[5]' }
 */
export function parseAction(text: string): ParsedAction {
  if (typeof text !== 'string') return unreadable(`it is ${text === null ? 'null' : typeof text}, not a text`)
  if (text.length > MAX_CHARS) return unreadable(`it is longer than ${MAX_CHARS} characters`)
  const brackets = text.indexOf(BRACKETS)
  let parsed: ParsedAction | undefined
  // Prose before a call may contain a brace, so skip JSON that is not a call. At most two positions are tried.
  for (const start of startsOfJson(text)) {
    if (brackets >= 0 && start > brackets) break
    parsed = readJson(text, start)
    if (parsed.kind === 'call') return parsed
  }
  if (brackets >= 0) return readBrackets(text, brackets)
  return parsed ?? unreadable('it has no tool call')
}

/** Formats a call as text that `parseAction` reads. Values that are not texts are written as JSON. */
export function formatAction({ tool, arguments: args }: ToolCall): string {
  const parts = Object.entries(args).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `${name}[${text.replaceAll(/[\\[\]]/g, '\\$&')}]`
  })
  return `${BRACKETS}${tool}]${parts.length === 0 ? '' : ` with ${parts.join(' ')}`}`
}

/** Reads a call from data: `tool`, `tool_name` or `name`; `arguments`, `args`, `parameters` or `input`. */
export function callOf(value: unknown): ToolCall | undefined {
  if (!isObject(value)) return undefined
  const inner = isObject(value.function) ? value.function : value
  const tool = inner.tool ?? inner.tool_name ?? inner.name
  const given = inner.arguments ?? inner.args ?? inner.parameters ?? inner.input ?? {}
  if (typeof tool !== 'string' || !isName(tool)) return undefined
  // Some models write the arguments as a JSON string.
  const args = typeof given === 'string' && !isTooDeep(given) ? jsonOf(given) : given
  return isObject(args) ? { tool, arguments: args } : undefined
}

// ---- JSON

/** Positions where JSON may start: the first brace, and the first brace of a fenced block. */
function startsOfJson(text: string): number[] {
  const first = text.indexOf('{')
  const fence = text.indexOf(FENCE, first + 1)
  const fenced = fence < 0 ? -1 : text.indexOf('{', fence)
  return [...new Set([first, fenced])].filter((at) => at >= 0)
}

function readJson(text: string, start: number): ParsedAction {
  const end = endOfJson(text, start)
  if (end === 'deep') return unreadable(`its JSON is nested more than ${MAX_DEPTH} deep`)
  if (end === 'open') return unreadable('its JSON is incomplete: a brace is not closed')
  const value = jsonOf(text.slice(start, end))
  if (value === undefined) return unreadable('its JSON has a syntax error')
  const call = callOf(value)
  if (call === undefined) return unreadable('its JSON does not name a tool, or its arguments are not an object')
  return { kind: 'call', ...call, raw: JSON.stringify(call.arguments) }
}

/** The position after the brace that closes the one at `start`. Skips strings. */
function endOfJson(text: string, start: number): number | 'open' | 'deep' {
  let depth = 0
  let inString = false
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (inString) {
      if (char === '\\') at++
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === '{' || char === '[') {
      if (++depth > MAX_DEPTH) return 'deep'
    } else if ((char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return 'open'
}

const isTooDeep = (text: string) => endOfJson(text, 0) === 'deep'

/** Returns undefined if the text is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// ---- brackets

function readBrackets(text: string, start: number): ParsedAction {
  const from = start + BRACKETS.length
  const to = text.indexOf(']', from)
  const tool = to < 0 ? '' : text.slice(from, Math.min(to, from + MAX_NAME_CHARS + 1)).trim()
  if (!isName(tool)) return unreadable('`use_tool[…]` must contain the name of a tool')
  const args = new Map<string, string>()
  let at = skipBlanks(text, to + 1)
  if (!text.startsWith('with', at)) return { kind: 'call', tool, arguments: {}, raw: '' }
  at = skipBlanks(text, at + 'with'.length)
  const began = at
  let end = at
  for (;;) {
    const name = nameAt(text, at)
    if (name === '' || text[at + name.length] !== '[') break
    const value = valueAt(text, at + name.length + 1)
    if (value === undefined) return unreadable(`the bracket of '${name}' is not closed; write \\[ and \\] inside it`)
    if (args.has(name)) return unreadable(`the argument '${name}' is given twice`)
    args.set(name, value.text)
    end = value.end
    at = skipBetween(text, end)
  }
  if (args.size === 0) return unreadable('there is no ARGUMENT[VALUE] after `with`')
  // Build from entries, so that a name such as __proto__ becomes an own property.
  return { kind: 'call', tool, arguments: Object.fromEntries(args), raw: text.slice(began, end) }
}

/** Reads a value up to its closing bracket. */
function valueAt(text: string, start: number): { text: string; end: number } | undefined {
  let depth = 1
  let value = ''
  let from = start
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (char === '\\' && (text[at + 1] === '[' || text[at + 1] === ']' || text[at + 1] === '\\')) {
      value += text.slice(from, at)
      from = ++at
    } else if (char === '[') depth++
    else if (char === ']' && --depth === 0) return { text: value + text.slice(from, at), end: at + 1 }
  }
  return undefined
}

function nameAt(text: string, start: number): string {
  let at = start
  while (at < text.length && at - start < MAX_NAME_CHARS && isNameChar(text.charCodeAt(at))) at++
  return text.slice(start, at)
}

/** Letters, digits, `_`, `-` and `.`. */
const isNameChar = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 48 && code <= 57) ||
  code === 95 ||
  code === 45 ||
  code === 46 ||
  code > 127

function skipBlanks(text: string, start: number): number {
  let at = start
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** Skips what may separate arguments: blanks, a comma, and the word "and". A line break ends the call. */
function skipBetween(text: string, start: number): number {
  let at = skipBlanks(text, start)
  if (text[at] === ',') at = skipBlanks(text, at + 1)
  return text.startsWith('and ', at) ? skipBlanks(text, at + 4) : at
}

// ---- shared

/** The name of a tool is one line without brackets. */
const isName = (name: string) => name !== '' && name.length <= MAX_NAME_CHARS && !/[[\]\n\r]/.test(name)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const unreadable = (reason: string): ParsedAction => ({ kind: 'unreadable', reason })
