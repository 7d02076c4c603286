import { ManyworldsError } from '../../errors.ts'
import { nearest } from '../../near-miss.ts'

/** Texts by the name of what they are: `instructions`, or `tools.NAME` for the description of a tool. */
export type Texts = Readonly<Record<string, string>>

const KIND = 'manyworlds.texts'
/** More than any model reads. A hostile or endless text stops here. */
export const MOST_CHARS = 200_000
const MOST_TEXTS = 256
const TOOL = 'tools.'
/** What OpenAI and Anthropic allow as the name of a tool, and dots, which some servers allow too. */
const TOOL_NAME = /^[\w.-]{1,128}$/

/** Of the description of a tool: its name; undefined: the text is another. */
export const toolOf = (name: string): string | undefined =>
  name.startsWith(TOOL) ? name.slice(TOOL.length) : undefined

/** Throws what is wrong with them. */
export function checkTexts(texts: unknown): asserts texts is Texts {
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts))
    throw wrong("`texts` must be an object such as { instructions: '…', 'tools.lookup': '…' }")
  const entries = Object.entries(texts)
  if (entries.length === 0) throw wrong("`texts` has no text: give { instructions: '…' }")
  if (entries.length > MOST_TEXTS) throw wrong(`\`texts\` has ${entries.length} texts, and ${MOST_TEXTS} are allowed`)
  for (const [name, text] of entries) {
    checkName(name)
    if (typeof text !== 'string') throw wrong(`text '${name}' must be a string, it is ${typeof text}`)
    if (text.trim() === '') throw wrong(`text '${name}' is empty: write what a good colleague would be told first`)
    if (text.length > MOST_CHARS)
      throw wrong(`text '${name}' has ${text.length} characters, and ${MOST_CHARS} are allowed`)
  }
}

function checkName(name: string): void {
  const tool = toolOf(name)
  if (name === 'instructions' || (tool !== undefined && TOOL_NAME.test(tool))) return
  const meant = nearest(name, ['instructions'])
  throw wrong(
    `nobody reads a text '${name}'${meant === undefined ? '' : `; did you mean '${meant}'?`}: a text is \`instructions\`, or \`tools.NAME\` for the description of a tool`,
  )
}

/** In the order of their names: the same texts have the same bytes. */
export function packTexts(texts: Texts): Uint8Array {
  const sorted = Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1)))
  return new TextEncoder().encode(JSON.stringify({ kind: KIND, format: 1, texts: sorted }))
}

/** Undefined: the bytes are something else. Throws if they are texts that cannot be read. */
export function unpackTexts(bytes: Uint8Array): Texts | undefined {
  if (!startsAsTexts(bytes)) return undefined
  try {
    const { format, texts } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as {
      format?: unknown
      texts?: unknown
    }
    if (format !== 1) throw wrong(`they have the format ${String(format)}, and this version of manyworlds reads 1`)
    checkTexts(texts)
    return texts
  } catch (cause) {
    if (ManyworldsError.is(cause)) throw cause
    throw wrong(`they are damaged: ${(cause as Error).message}`, cause)
  }
}

const START = new TextEncoder().encode(`{"kind":"${KIND}"`)

const startsAsTexts = (bytes: Uint8Array): boolean => START.every((byte, place) => bytes[place] === byte)

const wrong = (what: string, cause?: unknown) =>
  new ManyworldsError('POLICY_INVALID', `the texts of a policy: ${what}`, cause === undefined ? undefined : { cause })
