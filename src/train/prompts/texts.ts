import { nearest } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'

/** Texts by name: `instructions`, or `tools.NAME` for the description of a tool. */
export type Texts = Readonly<Record<string, string>>

const KIND = 'manyworlds.texts'
/** More than any model reads; limits hostile or endless texts. */
export const MAX_CHARS = 200_000
const MAX_TEXTS = 256
const TOOL = 'tools.'
/** The tool names that OpenAI and Anthropic allow, plus dots, which some servers allow. */
const TOOL_NAME = /^[\w.-]{1,128}$/

/** The name of the tool that a text describes; undefined for other texts. */
export const toolOf = (name: string): string | undefined =>
  name.startsWith(TOOL) ? name.slice(TOOL.length) : undefined

/** Throws if the texts are invalid. */
export function checkTexts(texts: unknown): asserts texts is Texts {
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts))
    throw wrong("`texts` must be an object such as { instructions: '…', 'tools.lookup': '…' }")
  const entries = Object.entries(texts)
  if (entries.length === 0) throw wrong("`texts` is empty; give { instructions: '…' }")
  if (entries.length > MAX_TEXTS) throw wrong(`\`texts\` has ${entries.length} texts; at most ${MAX_TEXTS} are allowed`)
  for (const [name, text] of entries) {
    checkName(name)
    if (typeof text !== 'string') throw wrong(`text '${name}' must be a string, it is ${typeof text}`)
    if (text.trim() === '') throw wrong(`text '${name}' is empty; write initial instructions`)
    if (text.length > MAX_CHARS)
      throw wrong(`text '${name}' has ${text.length} characters; at most ${MAX_CHARS} are allowed`)
  }
}

function checkName(name: string): void {
  const tool = toolOf(name)
  if (name === 'instructions' || (tool !== undefined && TOOL_NAME.test(tool))) return
  const meant = nearest(name, ['instructions'])
  throw wrong(
    `unknown text '${name}'${meant === undefined ? '' : `, did you mean '${meant}'?`}; allowed: \`instructions\`, and \`tools.NAME\` for the description of a tool`,
  )
}

/** Sorted by name, so that the same texts have the same bytes. */
export function packTexts(texts: Texts): Uint8Array {
  const sorted = Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1)))
  return new TextEncoder().encode(JSON.stringify({ kind: KIND, format: 1, texts: sorted }))
}

/** Undefined if the bytes are something else. Throws if they are texts that cannot be read. */
export function unpackTexts(bytes: Uint8Array): Texts | undefined {
  if (!startsAsTexts(bytes)) return undefined
  try {
    const { format, texts } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as {
      format?: unknown
      texts?: unknown
    }
    if (format !== 1) throw wrong(`their format is ${String(format)}, but this version of manyworlds reads format 1`)
    checkTexts(texts)
    return texts
  } catch (cause) {
    if (ManyworldsError.is(cause)) throw cause
    throw wrong(`they are damaged: ${(cause as Error).message}`, cause)
  }
}

const START = new TextEncoder().encode(`{"kind":"${KIND}"`)

const startsAsTexts = (bytes: Uint8Array): boolean => START.every((byte, index) => bytes[index] === byte)

const wrong = (what: string, cause?: unknown) =>
  new ManyworldsError('POLICY_INVALID', `the texts of a policy: ${what}`, cause === undefined ? undefined : { cause })
