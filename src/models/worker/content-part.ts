import type { FilePart } from '../language-model.ts'

/** A part of a user message in the chat completions format. */
export function contentPart(part: { type: 'text'; text: string } | FilePart): object {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { data, mediaType, filename } = part
  const kind = mediaType.split('/', 1)[0]
  if (data.type === 'text') return { type: 'text', text: data.text }
  if (data.type === 'reference') return { type: 'file', file: { file_id: Object.values(data.reference)[0] } }
  if (kind === 'image') return { type: 'image_url', image_url: { url: urlOf(data, mediaType) } }
  if (kind === 'video') return { type: 'video_url', video_url: { url: urlOf(data, mediaType) } }
  if (data.type === 'url') throw unsupported(`a file of type ${mediaType} by URL`)
  if (kind === 'text') return { type: 'text', text: new TextDecoder().decode(bytesOf(data.data)) }
  const whole = wholeType(data.data, mediaType)
  if (whole === 'application/pdf')
    return { type: 'file', file: { filename: filename ?? 'document.pdf', file_data: urlOf(data, whole) } }
  const format = AUDIO[whole]
  if (format === undefined) throw unsupported(`a file of type ${whole}`)
  return { type: 'input_audio', input_audio: { data: base64(data.data), format } }
}

const AUDIO: Readonly<Record<string, string>> = { 'audio/wav': 'wav', 'audio/mp3': 'mp3', 'audio/mpeg': 'mp3' }

const unsupported = (what: string) => new TypeError(`chat completions do not support ${what}; send it in another form`)

type Sent = Extract<FilePart['data'], { type: 'data' | 'url' }>

const urlOf = (data: Sent, mediaType: string) =>
  data.type === 'url' ? String(data.url) : `data:${wholeType(data.data, mediaType)};base64,${base64(data.data)}`

const base64 = (data: Uint8Array | string) => (typeof data === 'string' ? data : Buffer.from(data).toString('base64'))
const bytesOf = (data: Uint8Array | string) => (typeof data === 'string' ? Buffer.from(data, 'base64') : data)

/** Magic numbers of files; null matches any byte. */
const SIGNATURES: readonly (readonly [type: string, bytes: readonly (number | null)[]])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47]],
  ['image/jpeg', [0xff, 0xd8]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
  ['image/bmp', [0x42, 0x4d]],
  ['audio/wav', [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x41, 0x56, 0x45]],
  ['audio/mpeg', [0x49, 0x44, 0x33]],
  ['audio/mpeg', [0xff, 0xfb]],
  ['application/pdf', [0x25, 0x50, 0x44, 0x46]],
]
const SIGNATURE_CHARS = 64

/** The SDK may know only that a file is an image (`image/*` or `image`): its first bytes determine the type. */
function wholeType(data: Uint8Array | string, mediaType: string): string {
  const [kind, form] = mediaType.split('/', 2)
  if (form && form !== '*') return mediaType
  const start = bytesOf(typeof data === 'string' ? data.slice(0, SIGNATURE_CHARS) : data)
  const found = SIGNATURES.find(
    ([type, bytes]) =>
      type.startsWith(`${kind}/`) && bytes.every((byte, index) => byte === null || byte === start[index]),
  )
  if (found) return found[0]
  throw unsupported(`a file of type ${mediaType} whose first bytes do not identify it; set its exact \`mediaType\``)
}
