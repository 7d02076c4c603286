import { randomUUID } from 'node:crypto'

/**
 * The body of a cached reply with a new completion id: frameworks such as LangGraph merge messages that have the same id.
 * Replaces the top-level `id` of a chat completion, or of every chunk of a stream (`data: {…}` lines), and no other
 * character. A body without such an id is returned as it is. Takes linear time.
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

/** A stream may begin with comments (`: keep-alive`), empty lines, or other fields (`event: …`). JSON has no such lines. */
const isStream = (body: string) => body.startsWith(DATA) || body.includes(`\n${DATA}`)

/** The kind of id that stands before its first dash or underscore: `chatcmpl-`. */
const prefixOf = (id: string) => /^[a-z]{1,16}[-_]/i.exec(id)?.[0] ?? ''

function withIds(json: string, newId: (old: string) => string): string {
  const places = idsIn(json)
  if (places.length === 0) return json
  const parts: string[] = []
  let from = 0
  for (const { start, end } of places) {
    parts.push(json.slice(from, start), JSON.stringify(newId(JSON.parse(json.slice(start, end)) as string)))
    from = end
  }
  return parts.join('') + json.slice(from)
}

interface Place {
  readonly start: number
  /** The index after its last character. */
  readonly end: number
}

/** Where the values of the top-level `id` stand, with their quotes. None if the text is no JSON object, or its id no text. */
function idsIn(json: string): Place[] {
  if (!isObject(json)) return []
  // From here on the text is known to be JSON, so that strings and brackets are all there is to look at.
  const places: Place[] = []
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
          if (key === 'id') places.push({ start, end: at + 1 })
        } else key = keyOf(json, start, at + 1)
      }
    }
  }
  return places
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
/** `"id"` with both letters written as `\u0069`. Longer keys are not decoded. */
const LONGEST_ID_KEY = 14

const keyOf = (json: string, start: number, end: number): string =>
  end - start > LONGEST_ID_KEY ? '' : (JSON.parse(json.slice(start, end)) as string)

/** The index of the quote that ends the text which begins at `start`. */
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
