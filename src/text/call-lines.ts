import type { Step, ToolStep } from '../trajectory/step.ts'
import { errorText, resultLines } from './content-lines.ts'
import { oneLine } from './escape-controls.ts'
import { excerptLines, someRows } from './excerpt.ts'
import { inline } from './inline.ts'
import { jsonIn } from './json-in.ts'
import { duration } from './quantities.ts'
import { type ValueLayout, valueLines } from './value-lines.ts'
import { cut, displayWidth } from './width.ts'

const INDENT = '  '
const NAME_CHARS = 80
const ARGUMENTS = { chars: 600, lines: 10 }
const RESULT = { chars: 800, lines: 14 }
const ERROR = { chars: 800, lines: 12 }

/** A tool call and its result. */
export interface Call {
  /** The text before its name. */
  readonly mark: string
  readonly name: string
  readonly arguments: { readonly raw: string; readonly value?: unknown }
  /** When it happened, and its duration. */
  readonly facts: string
  /** Undefined if the result is unknown. */
  readonly end: { readonly result?: unknown; readonly error?: unknown } | undefined
}

/** A step in which a tool was called: `3  lookup { id: 7 }  +1.2 s, took 40 ms`, and its result below. */
export function toolLines(step: Step & ToolStep, layout: ValueLayout): string[] {
  const { index, atMs, name, arguments: given, ms } = step
  const facts = `+${duration(atMs)}, took ${duration(ms)}`
  return callLines({ mark: `${index}  `, name, arguments: given, facts, end: step }, layout)
}

export function callLines(call: Call, layout: ValueLayout): string[] {
  const inside = { ...layout, width: layout.width - INDENT.length }
  return [...headLines(call, layout), ...endLines(call.end, inside).map((line) => INDENT + line)]
}

/** Short arguments are on the line of the name, longer ones below it. */
function headLines({ mark, name, arguments: { raw, value }, facts }: Call, layout: ValueLayout): string[] {
  const { paint, width } = layout
  const shown = cut(oneLine(name), Math.max(1, Math.min(NAME_CHARS, width - displayWidth(mark))))
  const given = value ?? jsonIn(raw) ?? (raw.trim() === '' ? {} : raw)
  const left = width - displayWidth(`${mark}${shown} `)
  const short = left < 2 ? undefined : inline(given, left)
  const head = paint('dim', mark) + paint(['bold', 'yellow'], shown)
  const used = displayWidth(`${mark}${shown}${short === undefined ? '' : ` ${short}`}`)
  const when = used + 2 + facts.length <= width && facts !== '' ? `  ${paint('dim', facts)}` : ''
  if (short !== undefined) return [`${head} ${short}${when}`]
  const inside = { ...layout, width: width - INDENT.length }
  const rows =
    typeof given === 'string'
      ? excerptLines(given, inside, ARGUMENTS)
      : someRows(valueLines(given, inside), ARGUMENTS.lines, inside)
  return [head + when, ...rows.map((row) => INDENT + row)]
}

function endLines(end: Call['end'], layout: ValueLayout): string[] {
  const { paint } = layout
  const inside = { ...layout, width: layout.width - INDENT.length }
  if (end === undefined) return [paint('dim', '→ no result')]
  if (end.error !== undefined && end.error !== null)
    return marked(
      paint('red', '✗ '),
      excerptLines(errorText(end.error), inside, ERROR).map((line) => paint('red', line)),
    )
  const lines = resultLines(end.result, inside, RESULT)
  return lines.length === 0 ? [paint('dim', '→ nothing')] : marked(paint('dim', '→ '), lines)
}

const marked = (mark: string, lines: readonly string[]): string[] =>
  lines.map((line, place) => (place === 0 ? mark : INDENT) + line)
