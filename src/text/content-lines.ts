import { type Excerpt, excerptLines, someRows } from './excerpt.ts'
import { inline } from './inline.ts'
import { bytes } from './quantities.ts'
import { type ValueLayout, valueLines } from './value-lines.ts'
import { visible } from './visible.ts'
import { cut } from './width.ts'

/** Longer texts are not read as JSON. */
const JSON_CHARS = 1_000_000

/** What a message says, or what a tool returned: a text, a list of parts of which some are texts, or any value. */
export function contentLines(content: unknown, layout: ValueLayout, most: Excerpt): string[] {
  if (content === null || content === undefined || content === '') return []
  if (typeof content === 'string') return excerptLines(content, layout, most)
  if (Array.isArray(content) && content.length > 0 && content.length <= JSON_CHARS && content.every(isPart))
    return content.flatMap((part) =>
      'text' in part && typeof part.text === 'string'
        ? excerptLines(part.text, layout, most)
        : [layout.paint('dim', partText(part, layout))],
    )
  return [...someRows(valueLines(content, layout), most.lines, layout)]
}

/** The same, where a text that is JSON is read: tools return much of it, on a single line. */
export function resultLines(result: unknown, layout: ValueLayout, most: Excerpt): string[] {
  const text = typeof result === 'string' ? result : onlyText(result)
  if (text === undefined) return contentLines(result, layout, most)
  const value = jsonIn(text)
  return value === undefined
    ? contentLines(text, layout, most)
    : [...someRows(valueLines(value, layout), most.lines, layout)]
}

/** The object or list that a text is as JSON; undefined if it is something else. */
export function jsonIn(text: string): object | undefined {
  if (text.length > JSON_CHARS || !/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text) as object
  } catch {
    return undefined
  }
}

/** What an error says, whether it is a text, an error or something like one. */
export function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null || !('message' in error)) return inline(error)
  const text = (value: unknown) => (typeof value === 'string' ? value : inline(value))
  return ('name' in error ? `${text(error.name)}: ` : '') + text(error.message)
}

type Part = Readonly<Record<string, unknown>> & { readonly type: string }

const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

function onlyText(content: unknown): string | undefined {
  if (!Array.isArray(content) || content.length !== 1 || !isPart(content[0])) return undefined
  const [{ type, text }] = content
  return type === 'text' && typeof text === 'string' ? text : undefined
}

/** A picture, a file and such. */
function partText(part: Part, { width }: ValueLayout): string {
  const short = inline(part, width)
  if (short !== undefined) return short
  const data = Object.values(part).flatMap((value) =>
    typeof value === 'object' ? Object.values(value ?? {}) : [value],
  )
  const size = data.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
  return cut(`[${visible(part.type).replaceAll('\n', ' ')}, ${bytes(size)}]`, width)
}
