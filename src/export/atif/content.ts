import { toLossless } from '../../trajectory/lossless-json.ts'
import type { AtifContent, AtifPart } from './document.ts'

/** Any value as text: a text as it is, anything else as JSON. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(toLossless(value))

/** The content of a message: a text, or parts in the form of ATIF; undefined if ATIF cannot represent it. */
export function atifContent(content: unknown): AtifContent | undefined {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const parts = content.map(atifPart)
  return parts.every((part) => part !== undefined) ? parts : undefined
}

interface WirePart {
  readonly type?: unknown
  readonly text?: unknown
  readonly image_url?: { readonly url?: unknown }
}

function atifPart(part: unknown): AtifPart | undefined {
  if (typeof part !== 'object' || part === null) return undefined
  const { type, text, image_url } = part as WirePart
  if (type === 'text' && typeof text === 'string') return { type, text }
  const path = image_url?.url
  if (type !== 'image_url' || typeof path !== 'string') return undefined
  const media_type = mediaTypeOf(path)
  return media_type === undefined ? undefined : { type: 'image', source: { media_type, path } }
}

/** The media type, from the start of a `data:` address or the file extension of another. */
const DATA = /^data:(image\/(?:jpeg|png|gif|webp))[;,]/
const ENDING = /\.(jpe?g|png|gif|webp)$/i

function mediaTypeOf(url: string): string | undefined {
  const data = DATA.exec(url.slice(0, 40))?.[1]
  if (data !== undefined) return data
  const ending = url.startsWith('data:') ? undefined : ENDING.exec(url.split(/[?#]/, 1)[0]!)?.[1]?.toLowerCase()
  return ending && `image/${ending === 'jpg' ? 'jpeg' : ending}`
}

/** Converts content back to the form of a chat message. */
export const wireContent = (content: AtifContent): unknown =>
  typeof content === 'string'
    ? content
    : content.map((part) =>
        part.type === 'text' ? part : { type: 'image_url', image_url: { url: part.source?.path ?? '' } },
      )

/** Parses a JSON object; returns undefined if the text is not one. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** Parses a list of JSON objects, such as tool definitions. */
export function objectsIn(text: string): readonly object[] | undefined {
  if (text === '') return undefined
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
      ? (value as object[])
      : undefined
  } catch {
    return undefined
  }
}
