import { isPart, onlyText, type Part } from './content-part.ts'
import { escapeControls } from './escape-controls.ts'
import { type Excerpt, excerptLines, someRows } from './excerpt.ts'
import { inline } from './inline.ts'
import { JSON_CHARS, jsonIn } from './json-in.ts'
import { bytes } from './quantities.ts'
import { type ValueLayout, valueLines } from './value-lines.ts'
import { cut } from './width.ts'

/** The content of a message or the result of a tool: a text, a list of parts of which some are texts, or any value. */
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

/** The same for a result that may be JSON in a text: tools often return JSON on a single line, which is shown as a value. */
export function resultLines(result: unknown, layout: ValueLayout, most: Excerpt): string[] {
  const text = typeof result === 'string' ? result : onlyText(result)
  if (text === undefined) return contentLines(result, layout, most)
  const value = jsonIn(text)
  return value === undefined
    ? contentLines(text, layout, most)
    : [...someRows(valueLines(value, layout), most.lines, layout)]
}

/** The message of an error, which may be a text, an error, or an object with a message. */
export function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null || !('message' in error)) return inline(error)
  const text = (value: unknown) => (typeof value === 'string' ? value : inline(value))
  return ('name' in error ? `${text(error.name)}: ` : '') + text(error.message)
}

/** A part that is not a text: an image, a file and so on. */
function partText(part: Part, { width }: ValueLayout): string {
  const short = inline(part, width)
  if (short !== undefined) return short
  const data = Object.values(part).flatMap((value) =>
    typeof value === 'object' ? Object.values(value ?? {}) : [value],
  )
  const size = data.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
  return cut(`[${escapeControls(part.type).replaceAll('\n', ' ')}, ${bytes(size)}]`, width)
}
