import { isPart, onlyText, type Part } from './content-part.ts'
import { escapeControls } from './escape-controls.ts'
import { type Excerpt, excerptLines, someRows } from './excerpt.ts'
import { inline } from './inline.ts'
import { JSON_CHARS, jsonIn } from './json-in.ts'
import { bytes } from './quantities.ts'
import { type ValueLayout, valueLines } from './value-lines.ts'
import { cut } from './width.ts'

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

/** What an error says, whether it is a text, an error or something like one. */
export function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null || !('message' in error)) return inline(error)
  const text = (value: unknown) => (typeof value === 'string' ? value : inline(value))
  return ('name' in error ? `${text(error.name)}: ` : '') + text(error.message)
}

/** A picture, a file and such. */
function partText(part: Part, { width }: ValueLayout): string {
  const short = inline(part, width)
  if (short !== undefined) return short
  const data = Object.values(part).flatMap((value) =>
    typeof value === 'object' ? Object.values(value ?? {}) : [value],
  )
  const size = data.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
  return cut(`[${escapeControls(part.type).replaceAll('\n', ' ')}, ${bytes(size)}]`, width)
}
