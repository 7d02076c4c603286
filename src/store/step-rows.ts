import type { SQLInputValue } from 'node:sqlite'
import { deserialize } from 'node:v8'
import { deflateRawSync, inflateRawSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { MAX_VALUE_BYTES } from '../protocol/pack.ts'
import type { ListLink } from '../trajectory/list-memory.ts'
import { mostDecodedBytes } from '../trajectory/numbers.ts'
import type { PackedNumbers, PackedStep } from '../trajectory/packed-step.ts'
import { STEP_KINDS, type Step } from '../trajectory/step.ts'
import type { StepUnpacker } from '../trajectory/unpack-steps.ts'
import type { BlobReader, BlobWriter } from './blobs.ts'
import { decodeDelta, encodeDelta } from './body-delta.ts'
import {
  type Columns,
  checkedRow,
  isAnything,
  isBytes,
  isNumber,
  isText,
  isWhole,
  orNull,
  usageOf,
} from './stored-shapes.ts'

/** The columns of a step. */
export const STEP_COLUMNS = 'key, kind, at_us, reward, version, usage, links, record, numbers'

/**
 * How the body of a step is stored, in `record`:
 * - text: JSON of up to 4,096 characters, which any SQLite tool can read
 * - integer: the number of a blob, for larger bodies
 * - bytes: the first byte says how to decode the rest, see below
 */
const FORM = {
  /** v8.serialize, for values that JSON cannot represent. */
  v8: 1,
  v8Zstd: 2,
  /** JSON, deflated with the bodies of earlier steps as the dictionary: the turns of a conversation resemble each other. */
  inContext: 3,
  /** JSON of an action, as its difference from the previous action: see `body-delta.ts`. */
  delta: 4,
} as const

const INLINE_CHARS = 4096
/** The first characters of an attempt are not deflated. Most attempts have no more than this. */
const PLAIN_CHARS = 4096
/** A shorter body is not worth compressing. */
const COMPRESS_CHARS = 160
const COMPRESS_BYTES = 512
const WORTH_IT = 0.85
/** The window of deflate. */
const CONTEXT_CHARS = 32 * 1024

const ACTION = STEP_KINDS.indexOf('action')
/** Shorter actions are stored without a delta. */
const DELTA_CHARS = 64
/** A UTF-16 unit takes up to three bytes of UTF-8. */
const MOST_BYTES = 3 * INLINE_CHARS

/** The dictionary for the next body: the end of the bodies so far. Encoder and decoder keep the same dictionary. */
class Context {
  #text = ''
  chars = 0
  /** The body of the last action. */
  action: Buffer | undefined

  add(body: string, kind: number): void {
    this.chars += body.length
    this.#text += body
    if (this.#text.length > 2 * CONTEXT_CHARS) this.#text = this.#text.slice(-CONTEXT_CHARS)
    if (kind === ACTION) this.action = Buffer.from(body)
  }

  get dictionary(): Buffer {
    return Buffer.from(this.#text.slice(-CONTEXT_CHARS)).subarray(-CONTEXT_CHARS)
  }
}

/** Writes the steps of one start. */
export class StepEncoder {
  readonly #blobs: BlobWriter
  #context: Context | undefined = new Context()

  constructor(blobs: BlobWriter) {
    this.#blobs = blobs
  }

  /** Call this when encoded steps may not have been written. Later steps are then stored without a dictionary. */
  loseContext(): void {
    this.#context = undefined
  }

  /** Returns the values of `STEP_COLUMNS`. */
  encode(key: number, step: PackedStep): SQLInputValue[] {
    const [atUs, body, kind = 0, reward = null, usage, version = null, links, numbers] = step
    return [
      key,
      kind,
      atUs,
      reward,
      version,
      usage ? JSON.stringify(usage) : null,
      links ? JSON.stringify(links) : null,
      typeof body === 'string' ? this.#json(body, kind) : this.#bytes(body),
      numbers ? encodeArrays(numbers) : null,
    ]
  }

  #json(body: string, kind: number): SQLInputValue {
    if (body.length > INLINE_CHARS) return this.#blobs.put(body)
    const context = this.#context
    if (context === undefined) return body
    const stored = (kind === ACTION && deltaOf(context, body)) || deflated(context, body) || body
    context.add(body, kind)
    return stored
  }

  #bytes(body: Uint8Array): SQLInputValue {
    if (body.length > INLINE_CHARS) return this.#blobs.put(body)
    const small = body.length < COMPRESS_BYTES ? body : zstdCompressSync(body)
    return small.length < body.length * WORTH_IT ? formed(FORM.v8Zstd, small) : formed(FORM.v8, body)
  }
}

function deltaOf({ action }: Context, body: string): Uint8Array | undefined {
  if (action === undefined || body.length < DELTA_CHARS) return undefined
  const delta = encodeDelta(action, Buffer.from(body), body.length * WORTH_IT)
  return delta && formed(FORM.delta, delta)
}

function deflated(context: Context, body: string): Uint8Array | undefined {
  if (context.chars < PLAIN_CHARS || body.length < COMPRESS_CHARS) return undefined
  const packed = deflateRawSync(body, { dictionary: context.dictionary })
  return packed.length < body.length * WORTH_IT ? formed(FORM.inContext, packed) : undefined
}

/** A row of `_steps` as SQLite returns it. */
export interface StepRow {
  readonly kind: number
  readonly at_us: number
  readonly reward: number | null
  readonly version: number | null
  readonly usage: string | null
  readonly links: string | null
  readonly record: unknown
  readonly numbers: Uint8Array | null
}

const STEP: Columns<StepRow> = {
  kind: (kind) => isWhole(kind) && (kind as number) < STEP_KINDS.length,
  at_us: isWhole,
  reward: orNull(isNumber),
  version: orNull(isWhole),
  usage: orNull(isText),
  links: orNull(isText),
  record: isAnything,
  numbers: orNull(isBytes),
}

/** Decodes the steps of one start, in order. Throws if one is malformed. */
export class StepDecoder {
  readonly #bodies = new StepBodies()
  readonly #unpacker: StepUnpacker

  constructor(unpacker: StepUnpacker) {
    this.#unpacker = unpacker
  }

  /** `blobs` may use another connection for each step. */
  next(row: StepRow, blobs: BlobReader): Step {
    const { at_us: atUs, kind, reward, record, usage, links, numbers } = checkedRow(row, STEP, 'a step')
    const body = this.#bodies.next(record, kind, blobs)
    return this.#unpacker.next({
      ...{ atUs, kind, reward, fields: typeof body === 'string' ? JSON.parse(body) : body.value },
      usage: usage === null ? null : usageOf(usage),
      links: links === null ? null : linksOf(links),
      numbers: numbers === null ? null : decodeArrays(numbers, blobs),
    })
  }
}

/** Decodes the bodies of the steps of one start, in order. A body has only what its step adds to earlier steps. */
export class StepBodies {
  readonly #context = new Context()

  /** The body as JSON text, or as a value if it is not stored as text. */
  next(record: unknown, kind: number, blobs: BlobReader): string | { readonly value: unknown } {
    if (typeof record === 'number') return { value: blobs.read(record) }
    if (typeof record === 'string') return this.#inContext(record, kind)
    if (!(record instanceof Uint8Array)) throw new Error('a step has no record')
    const bytes = record.subarray(1)
    switch (record[0]) {
      case FORM.v8:
        return { value: deserialize(bytes) }
      case FORM.v8Zstd:
        return { value: deserialize(zstdDecompressSync(bytes, { maxOutputLength: INLINE_CHARS })) }
      case FORM.inContext: {
        const limits = { dictionary: this.#context.dictionary, maxOutputLength: MOST_BYTES }
        return this.#inContext(inflateRawSync(bytes, limits).toString(), kind)
      }
      case FORM.delta: {
        const { action = Buffer.alloc(0) } = this.#context
        return this.#inContext(decodeDelta(action, bytes, MOST_BYTES).toString(), kind)
      }
      default:
        throw new Error(`a step has the unknown encoding ${record[0]}`)
    }
  }

  #inContext(body: string, kind: number): string {
    this.#context.add(body, kind)
    return body
  }
}

const formed = (form: number, bytes: Uint8Array): Uint8Array => Buffer.concat([Uint8Array.of(form), bytes])

function linksOf(json: string): ListLink[] {
  const links: unknown = JSON.parse(json)
  const isLink = (link: unknown) => Array.isArray(link) && isPath(link[0]) && isWhole(link[1]) && isWhole(link[2])
  if (!Array.isArray(links) || !links.every(isLink)) throw new Error('`links` of a step is malformed')
  return links as ListLink[]
}

const isPath = (path: unknown) => Array.isArray(path) && path.every(isText)

// ---- arrays of numbers: one byte (1: the rest is zstd), a line of JSON with paths and lengths, then the arrays

const MOST_ARRAY_BYTES = MAX_VALUE_BYTES + 2 ** 24
const MOST_HEAD_BYTES = 2 ** 24

function encodeArrays(numbers: readonly PackedNumbers[]): Uint8Array {
  const head = JSON.stringify(numbers.map(([path, buffer]) => [path, buffer.byteLength]))
  const bytes = Buffer.concat([Buffer.from(`${head}\n`), ...numbers.map(([, buffer]) => new Uint8Array(buffer))])
  const small = bytes.length < COMPRESS_BYTES ? bytes : zstdCompressSync(bytes)
  return small.length < bytes.length * WORTH_IT ? formed(1, small) : formed(0, bytes)
}

function decodeArrays(stored: Uint8Array, blobs: BlobReader): PackedNumbers[] {
  const rest = stored.subarray(1)
  const bytes = stored[0] === 1 ? zstdDecompressSync(rest, { maxOutputLength: MOST_ARRAY_BYTES }) : rest
  let at = bytes.indexOf(10)
  if (at > MOST_HEAD_BYTES) throw new Error('`numbers` of a step is malformed')
  const head = JSON.parse(Buffer.from(bytes.subarray(0, at)).toString()) as [path: string[], length: number][]
  if (!Array.isArray(head) || !head.every((part) => Array.isArray(part) && isPath(part[0]) && isWhole(part[1])))
    throw new Error('`numbers` of a step is malformed')
  at++
  return head.map(([path, length]) => {
    const { buffer } = new Uint8Array(bytes.subarray(at, (at += length)))
    blobs.take(mostDecodedBytes(buffer))
    return [path, buffer]
  })
}
