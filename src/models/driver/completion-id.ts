import { randomUUID } from 'node:crypto'

/**
 * Replaces the completion id in the body of a cached reply, because frameworks such as LangGraph merge messages with
 * the same id. Replaces the top-level `id` of a chat completion, or of every chunk of a stream (`data: {…}` lines), and
 * nothing else. A body without such an id is returned unchanged. Takes linear time.
 */
export function withNewId(body: string): string {
  const newIds = new Map<string, string>()
  const newId = (old: string) => {
    let id = newIds.get(old)
    if (id === undefined) newIds.set(old, (id = `${prefixOf(old)}${randomUUID().replaceAll('-', '')}`))
    return id
  }
  if (!isStream(body)) return withIds(body, newId)
  return body
    .split('\n')
    .map((line) => {
      if (!line.startsWith(DATA)) return line
      return DATA + withIds(line.slice(DATA.length), newId)
    })
    .join('\n')
}

const DATA = 'data:'

/**
 * A stream may start with comments (`: keep-alive`), empty lines, or other fields (`event: …`), which JSON cannot
 * contain.
 */
const isStream = (body: string) => body.startsWith(DATA) || body.includes(`\n${DATA}`)

/** The prefix up to the first dash or underscore: `chatcmpl-`. */
const prefixOf = (id: string) => /^[a-z]{1,16}[-_]/i.exec(id)?.[0] ?? ''

function withIds(json: string, newId: (old: string) => string): string {
  const positions = idsIn(json)
  if (positions.length === 0) return json
  const parts: string[] = []
  let from = 0
  for (const { start, end } of positions) {
    parts.push(json.slice(from, start), JSON.stringify(newId(JSON.parse(json.slice(start, end)) as string)))
    from = end
  }
  return parts.join('') + json.slice(from)
}

interface Position {
  readonly start: number
  /** The index after its last character. */
  readonly end: number
}

/**
 * The positions of the values of the top-level `id`, with their quotes. Empty if the text is not a JSON object, or its
 * id is not a string.
 */
function idsIn(json: string): Position[] {
  if (!isObject(json)) return []
  // The text is known to be valid JSON, so only strings and brackets matter.
  const positions: Position[] = []
  let depth = 0
  /** At the top level: the key whose value comes next, or undefined before a key. */
  let key: string | undefined
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--
        break
      case COMMA:
        if (depth === 1) key = undefined
        break
      case QUOTE: {
        const start = at
        at = endOfText(json, start)
        if (depth !== 1) break
        if (key !== undefined) {
          if (key === 'id') positions.push({ start, end: at + 1 })
        } else key = keyOf(json, start, at + 1)
      }
    }
  }
  return positions
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
/** `"id"` with both letters escaped as `\u0069`. Longer keys are not decoded. */
const LONGEST_ID_KEY = 14

const keyOf = (json: string, start: number, end: number): string =>
  end - start > LONGEST_ID_KEY ? '' : (JSON.parse(json.slice(start, end)) as string)

/** The index of the closing quote of the string that starts at `start`. */
function endOfText(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const code = json.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) return at
  }
}

function isObject(json: string): boolean {
  if (!json.trimStart().startsWith('{')) return false
  try {
    JSON.parse(json)
    return true
  } catch {
    return false
  }
}
