/** A part of the content of a message: a text, a picture, a file. */
export type Part = Readonly<Record<string, unknown>> & { readonly type: string }

export const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

/** The text of content that is one part, a text. */
export function onlyText(content: unknown): string | undefined {
  if (!Array.isArray(content) || content.length !== 1 || !isPart(content[0])) return undefined
  const [{ type, text }] = content
  return type === 'text' && typeof text === 'string' ? text : undefined
}
