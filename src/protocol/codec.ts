import v8 from 'node:v8'
import { portableText, readPortable } from './portable.ts'
import { KIND } from './raw-frames.ts'
import { scanV8 } from './scan-v8.ts'

/** JSON, for the messages before a codec is agreed on: plain data, without undefined in lists. */
export const PLAIN = 'json'

/**
 * v8's structured clone: as fast as JSON on small values, twice as fast on large ones, and it keeps Map, Date and bytes.
 * Its wire version differs between Node versions, so it is part of the name.
 */
const V8 = `v8/${v8.serialize(null)[1]}`

/** Several times slower, but the same in every Node version: used if the two ends have different versions of v8. */
const PORTABLE = 'devalue/1'

/**
 * The codecs of this process, best first. MANYWORLDS_CODEC=devalue in its environment leaves only the portable one: for tests,
 * and as a workaround if two versions of v8 turn out to be incompatible.
 */
export const CODECS: readonly string[] = process.env.MANYWORLDS_CODEC === 'devalue' ? [PORTABLE] : [V8, PORTABLE]

/** The best codec that both ends have. */
export const agree = (theirs: readonly string[]): string | undefined => CODECS.find((codec) => theirs.includes(codec))

export function encode(messages: readonly unknown[], codec: string): Uint8Array {
  if (codec === V8) return encodeV8(messages)
  return codec === PORTABLE
    ? textFrame(KIND.portable, portableText(messages))
    : textFrame(KIND.plain, JSON.stringify(messages))
}

/** The first byte of a batch in this codec. */
export const kindOf = (codec: string): number =>
  codec === V8 ? KIND.v8 : codec === PORTABLE ? KIND.portable : KIND.plain

/** Undefined if a batch from another process may be decoded, else why not. */
export const scanBatch = (frame: Uint8Array): string | undefined => (frame[0] === KIND.v8 ? scanV8(frame) : undefined)

/** The messages of a batch in any codec. Throws on anything else. */
export function decode(frame: Uint8Array): unknown[] {
  const messages = decodeAny(frame)
  if (!Array.isArray(messages)) throw new TypeError('not a list')
  return messages
}

function decodeAny(frame: Uint8Array): unknown {
  switch (frame[0]) {
    case KIND.v8:
      return decodeV8(frame)
    case KIND.plain:
      return JSON.parse(textOf(frame))
    case KIND.portable:
      return readPortable(textOf(frame))
    default:
      throw new TypeError(frame.byteLength === 0 ? 'an empty frame' : `not a batch but of kind ${frame[0]}`)
  }
}

function encodeV8(messages: readonly unknown[]): Uint8Array {
  const serializer = new v8.DefaultSerializer()
  serializer.writeHeader()
  serializer.writeValue(messages)
  return serializer.releaseBuffer()
}

function decodeV8(frame: Uint8Array): unknown {
  const deserializer = new v8.DefaultDeserializer(frame)
  deserializer.readHeader()
  return deserializer.readValue()
}

function textFrame(kind: number, text: string): Uint8Array {
  const frame = Buffer.allocUnsafe(1 + Buffer.byteLength(text))
  frame[0] = kind
  frame.write(text, 1)
  return frame
}

const textOf = (frame: Uint8Array) => Buffer.from(frame.buffer, frame.byteOffset + 1, frame.byteLength - 1).toString()
