import { escapeControls } from './escape-controls.ts'
import type { Paint } from './paint.ts'

/** A message as model APIs represent it. Its other fields are shown too. */
interface Message {
  readonly role: string
  readonly content?: unknown
  readonly [extra: string]: unknown
}

const COLORS: Readonly<Record<string, Parameters<Paint>[0]>> = {
  system: ['bold', 'magenta'],
  user: ['bold', 'green'],
  assistant: ['bold', 'blue'],
  tool: ['bold', 'yellow'],
}

export function isConversation(value: object): value is readonly Message[] {
  if (!Array.isArray(value) || value.length === 0) return false
  // Not `every`, which skips holes one by one: a sparse array may have billions. This loop stops at the first.
  for (let i = 0; i < value.length; i++) if (!isMessage(value[i])) return false
  return true
}

const isMessage = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'role' in value && typeof value.role === 'string' && 'content' in value

/** The speaker, and the message below. `lines` lays out a part of a message, indented. */
export function messageLines(
  { role, content, ...more }: Message,
  paint: Paint,
  lines: (label: string | undefined, value: unknown) => string[],
): string[] {
  return [
    paint(COLORS[role] ?? 'bold', escapeControls(role).replaceAll('\n', ' ')),
    ...parts(content).flatMap((part) => lines(undefined, part)),
    ...Object.entries(more).flatMap(([key, value]) => lines(key, value)),
  ]
}

/** Content is a text, or a list of parts of which some are text. */
function parts(content: unknown): unknown[] {
  if (content === null || content === undefined || content === '') return []
  if (!Array.isArray(content)) return [content]
  return content.map((part: unknown) => (isTextPart(part) ? part.text : part))
}

const isTextPart = (part: unknown): part is { readonly text: string } =>
  typeof part === 'object' &&
  part !== null &&
  'type' in part &&
  part.type === 'text' &&
  'text' in part &&
  typeof part.text === 'string'
