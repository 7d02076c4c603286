import { hash } from 'node:crypto'
import { deserialize, serialize } from 'node:v8'
import { isExactJson } from '../protocol/pack.ts'

/**
 * An encoded value: JSON text if that restores it exactly, else the bytes of v8.serialize (Map, Date, bytes, cycles); null
 * for undefined.
 */
export type Encoded = string | Uint8Array | null

/** Encodes a result of `pack`, which is often encoded already. */
export function encodePacked(packed: unknown): Encoded {
  if (packed === undefined) return null
  if (packed instanceof String) return packed.valueOf()
  if (packed instanceof Uint8Array) return packed
  return encode(packed)
}

export function encode(value: unknown): Encoded {
  if (value === undefined) return null
  return isExactJson(value) ? JSON.stringify(value) : serialize(value)
}

export function decode(encoded: Encoded): unknown {
  if (encoded === null) return undefined
  return typeof encoded === 'string' ? JSON.parse(encoded) : deserialize(encoded)
}

/** The content of a task. Two tasks with the same content are the same task for a resume. */
export interface TaskContent {
  readonly agentName: string
  readonly params: Encoded
  readonly input: Encoded
  readonly info: Encoded
  readonly dependsOn: string | null
}

export function contentHash({ agentName, params, input, info, dependsOn }: TaskContent): Uint8Array {
  const parts = [agentName, params, input, info, dependsOn]
  const text = parts.every((part) => typeof part !== 'object' || part === null)
  // The common case in one call. NUL separates the parts, because JSON has no raw NUL.
  const content = text ? parts.join('\0') : Buffer.concat(parts.flatMap((part) => [bytesOf(part), SEPARATOR]))
  return hash('sha256', content, 'buffer').subarray(0, 16)
}

const SEPARATOR = Buffer.from([0])
/** The v8 header has a version that differs between releases of Node even if the rest is identical. */
const V8_HEADER_BYTES = 2

const bytesOf = (part: Encoded) =>
  part === null ? Buffer.alloc(0) : typeof part === 'string' ? Buffer.from(part) : part.subarray(V8_HEADER_BYTES)
