import { hash } from 'node:crypto'
import { deserialize } from 'node:v8'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { jsonPreview } from '../text/json.ts'
import type { DatabaseSync } from './sqlite.ts'
import { decode, type Encoded } from './values.ts'

/** Characters of JSON up to which a value stands in its row, where any SQLite tool can read it. */
const INLINE_CHARS = 4096
/** A text of this length inside a larger value (a system prompt, a document) is stored once for the whole run. */
const SHARED_CHARS = 1024
const PREVIEW_CHARS = 1024
/** Larger JSON is stored in one piece: to take it apart, all of it has to be read, which takes several times its size. */
const MAX_TAKEN_APART = 64 * 1024 * 1024
const COMPRESS_BYTES = 512
/** Compression must save at least this share, or the next reader pays for nothing. */
const WORTH_IT = 0.85
/** The first character of a text that stands for a blob; one that begins like this by itself gets it twice. */
const MARK = '\0'

/**
 * Values too large for a row: each content once, compressed where it pays. `kind` says how to read one: `json` or `v8`,
 * with `+parts` where texts were taken out of it, and `+zstd`.
 */
export class BlobWriter {
  readonly #find
  readonly #insert
  #next: number

  constructor(db: DatabaseSync) {
    this.#find = db.prepare('SELECT blob FROM _blobs WHERE hash = ?')
    this.#insert = db.prepare(
      'INSERT INTO _blobs (blob, hash, kind, size, is_cut, preview, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    const { last } = db.prepare('SELECT coalesce(max(blob), 0) AS last FROM _blobs').get() as { last: number }
    this.#next = last + 1
  }

  /** What goes into the row: the value itself, or the number of its blob. */
  put(value: Encoded): string | bigint | null {
    if (value === null || (typeof value === 'string' && value.length <= INLINE_CHARS)) return value
    // A bigint, because SQLite would take a number for a REAL here.
    return BigInt(typeof value === 'string' ? this.#storeJson(value) : this.#storeBytes(value))
  }

  #storeBytes(bytes: Uint8Array): number {
    return this.#store(bytes, 'v8', () => previewOf(jsonPreview(deserialize(bytes), PREVIEW_CHARS)))
  }

  #storeJson(json: string): number {
    const parts = json.length > MAX_TAKEN_APART ? undefined : this.#takeOut(json)
    const preview = () => previewOf({ text: json, isCut: false })
    return parts === undefined ? this.#store(json, 'json', preview) : this.#store(parts, 'json+parts', preview)
  }

  /** The value with its long texts replaced by the numbers of their blobs; undefined where it has none. */
  #takeOut(json: string): string | undefined {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object') return undefined
    let taken = false
    const rest = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner !== 'string') return inner
      if (inner.length >= SHARED_CHARS) {
        taken = true
        const text = JSON.stringify(inner)
        return `${MARK}${this.#store(text, 'json', () => previewOf({ text, isCut: false }))}`
      }
      return inner.startsWith(MARK) ? MARK + inner : inner
    })
    return taken ? rest : undefined
  }

  #store(content: string | Uint8Array, kind: string, preview: () => Preview): number {
    const digest = hash('sha256', content, 'buffer').subarray(0, 16)
    // The same characters mean another value where marks stand for texts.
    if (kind === 'json+parts') digest[0]! ^= 1
    const known = this.#find.get(digest) as { blob: number } | undefined
    if (known) return known.blob
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    const small = bytes.byteLength < COMPRESS_BYTES ? bytes : zstdCompressSync(bytes)
    const pays = small.byteLength < bytes.byteLength * WORTH_IT
    const blob = this.#next++
    const { text, isCut } = preview()
    const stored = pays ? small : bytes
    this.#insert.run(blob, digest, pays ? `${kind}+zstd` : kind, bytes.byteLength, Number(isCut), text, stored)
    return blob
  }
}

interface Preview {
  readonly text: string
  readonly isCut: boolean
}

/** Valid JSON in any case, so that a query that looks into it finds nothing, rather than an error. */
function previewOf({ text, isCut }: Preview): Preview {
  if (!isCut && text.length <= PREVIEW_CHARS) return { text, isCut }
  const start = text.length > PREVIEW_CHARS ? `${text.slice(0, PREVIEW_CHARS)}…` : text
  return { text: JSON.stringify(start), isCut: true }
}

export class BlobReader {
  readonly #get
  /** All that was read so far, uncompressed. */
  bytesRead = 0

  constructor(db: DatabaseSync) {
    this.#get = db.prepare('SELECT kind, data FROM _blobs WHERE blob = ?')
  }

  /** The value of a column that may hold the number of a blob. */
  read(stored: unknown): unknown {
    if (typeof stored === 'number') return this.#readBlob(stored)
    if (typeof stored === 'string') this.bytesRead += stored.length
    return decode(stored as Encoded)
  }

  #readBlob(blob: number): unknown {
    const row = this.#get.get(blob) as { kind: string; data: Uint8Array } | undefined
    if (!row) throw new Error(`blob ${blob} is missing`)
    const kinds = row.kind.split('+')
    const bytes = kinds.includes('zstd') ? zstdDecompressSync(row.data) : row.data
    this.bytesRead += bytes.byteLength
    if (kinds[0] === 'v8') return deserialize(bytes)
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
    return JSON.parse(text, kinds.includes('parts') ? (_key, inner: unknown) => this.#putBack(inner) : undefined)
  }

  #putBack(inner: unknown): unknown {
    if (typeof inner !== 'string' || !inner.startsWith(MARK)) return inner
    return inner.startsWith(MARK + MARK) ? inner.slice(MARK.length) : this.#readBlob(Number(inner.slice(MARK.length)))
  }
}
