import { hash } from 'node:crypto'
import { deserialize } from 'node:v8'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { MAX_VALUE_BYTES } from '../protocol/pack.ts'
import { jsonPreview } from '../text/json.ts'
import { keyOf, numberOf, RUN_SPAN } from './keys.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import type { StoreDb } from './store-db.ts'
import { type Columns, checkedRow, isBytes, isText, isWhole } from './stored-shapes.ts'
import { decode, type Encoded } from './values.ts'

/** JSON of up to this many characters is stored in its row, where any SQLite tool can read it. */
const INLINE_CHARS = 4096
/** Strings of this length or more inside a larger value (a system prompt, a document) are stored once per run. */
const SHARED_CHARS = 1024
const PREVIEW_CHARS = 1024
/** Larger JSON is stored whole: splitting it means parsing it, which takes several times its size in memory. */
const MAX_TAKEN_APART = 64 * 1024 * 1024
const COMPRESS_BYTES = 512
/** Keep the compressed form only if it is smaller than this fraction of the original. */
const WORTH_IT = 0.85
/** The most that may be read for one response: three values of the largest size. */
const MAX_READ_BYTES = 3 * MAX_VALUE_BYTES
/** A string that starts with this stands for a blob. In a string that really starts with it, it is doubled. */
const MARK = '\0'

/**
 * Stores values that are too large for a row. Equal content is stored once. `kind` says how to decode a blob: `json` or
 * `v8`, then `+parts` if long strings were moved to blobs of their own, then `+zstd` if it is compressed.
 */
export class BlobWriter {
  readonly #store: Pick<StoreDb, 'statement'>
  readonly #run: number
  #next: number

  constructor(store: Pick<StoreDb, 'statement'>, run: number) {
    this.#store = store
    this.#run = run
    const last = store.statement('SELECT max(blob) AS last FROM _blobs WHERE blob >= ? AND blob < ?')
    const { last: blob } = last.get(keyOf(run, 0), keyOf(run + 1, 0)) as { last: number | null }
    this.#next = (blob ?? keyOf(run, 0)) + 1
  }

  /** Returns what to store in the row: the value itself, or the number of its blob. */
  put(value: Encoded): string | bigint | null {
    if (value === null || (typeof value === 'string' && value.length <= INLINE_CHARS)) return value
    // A bigint: node:sqlite would bind a number as REAL in a column without a type.
    return BigInt(typeof value === 'string' ? this.#storeJson(value) : this.#storeBytes(value))
  }

  #storeBytes(bytes: Uint8Array): number {
    return this.#insert(bytes, 'v8', () => previewOf(jsonPreview(deserialize(bytes), PREVIEW_CHARS)))
  }

  #storeJson(json: string): number {
    const parts = json.length > MAX_TAKEN_APART ? undefined : this.#takeOut(json)
    const preview = () => previewOf({ text: json, isCut: false })
    return parts === undefined ? this.#insert(json, 'json', preview) : this.#insert(parts, 'json+parts', preview)
  }

  /** Replaces long strings by the numbers of their blobs. Returns undefined if there are none. */
  #takeOut(json: string): string | undefined {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object') return undefined
    let taken = false
    const rest = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner !== 'string') return inner
      if (inner.length >= SHARED_CHARS) {
        taken = true
        const text = JSON.stringify(inner)
        return `${MARK}${numberOf(this.#insert(text, 'json', () => previewOf({ text, isCut: false })))}`
      }
      return inner.startsWith(MARK) ? MARK + inner : inner
    })
    return taken ? rest : undefined
  }

  #insert(content: string | Uint8Array, kind: string, preview: () => Preview): number {
    const digest = hash('sha256', content, 'buffer').subarray(0, 16)
    // The same characters decode to another value if they contain marks, so they must not share a blob.
    if (kind === 'json+parts') digest[0]! ^= 1
    const known = this.#store.statement(FIND).get(digest, this.#run) as { blob: number } | undefined
    if (known) return known.blob
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    const small = bytes.byteLength < COMPRESS_BYTES ? bytes : zstdCompressSync(bytes)
    const pays = small.byteLength < bytes.byteLength * WORTH_IT
    const blob = this.#next++
    const { text, isCut } = preview()
    const stored = pays ? small : bytes
    const row = [blob, digest, pays ? `${kind}+zstd` : kind, bytes.byteLength, Number(isCut), text, stored] as const
    this.#store.statement(INSERT).run(...row)
    return blob
  }
}

const FIND = `SELECT blob FROM _blobs WHERE hash = ? AND blob / ${RUN_SPAN} = ?`
const INSERT = 'INSERT INTO _blobs (blob, hash, kind, size, is_cut, preview, data) VALUES (?, ?, ?, ?, ?, ?, ?)'

interface Preview {
  readonly text: string
  readonly isCut: boolean
}

/** Always valid JSON: a query with `->` then returns null for a cut value, and does not fail. */
function previewOf({ text, isCut }: Preview): Preview {
  if (!isCut && text.length <= PREVIEW_CHARS) return { text, isCut }
  const start = text.length > PREVIEW_CHARS ? `${text.slice(0, PREVIEW_CHARS)}…` : text
  return { text: JSON.stringify(start), isCut: true }
}

interface BlobRow {
  readonly kind: string
  readonly size: number
  readonly data: Uint8Array
}

const BLOB: Columns<BlobRow> = { kind: (kind) => KIND.test(String(kind)), size: isWhole, data: isBytes }
const KIND = /^(json(\+parts)?|v8)(\+zstd)?$/

export class TooManyBytes extends Error {}

/**
 * Decodes stored values. The file may be hostile: a few bytes of zstd can expand to gigabytes, and one string can be
 * referenced many times. So the total size is limited. Throws if a value is malformed.
 */
export class BlobReader {
  readonly db: DatabaseSync
  /** Bytes decoded so far. */
  bytesRead = 0
  #left = MAX_READ_BYTES

  constructor(db: DatabaseSync) {
    this.db = db
  }

  /** Starts a new budget. Call it when values that were read before are no longer held. */
  refill(): void {
    this.#left = MAX_READ_BYTES
  }

  /** Decodes a column that holds JSON, or the number of a blob. */
  read(stored: unknown): unknown {
    if (stored === null) return undefined
    if (typeof stored === 'number') return this.#readBlob(stored)
    if (typeof stored !== 'string') throw new Error('a stored value is neither JSON nor a blob number')
    this.take(stored.length)
    return decode(stored)
  }

  /** The hash of a blob's content, without reading it. */
  hashOf(number: number): string {
    const row = prepared(this.db, 'SELECT lower(hex(hash)) AS hash FROM _blobs WHERE blob = ?').get(number)
    if (!row) throw new Error(`blob ${number} is missing`)
    return checkedRow<{ hash: string }>(row, { hash: isText }, `blob ${number}`).hash
  }

  #readBlob(number: number): unknown {
    const { kinds, bytes } = this.#bytesOf(number)
    if (kinds[0] === 'v8') return decode(bytes)
    if (!kinds.includes('parts')) return JSON.parse(textOf(bytes))
    const texts = new Map<string, string>()
    const base = number - numberOf(number)
    return JSON.parse(textOf(bytes), (_key, inner: unknown) => this.#putBack(inner, base, texts))
  }

  #bytesOf(number: number): { readonly kinds: readonly string[]; readonly bytes: Uint8Array } {
    const row = prepared(this.db, 'SELECT kind, size, data FROM _blobs WHERE blob = ?').get(number)
    if (!row) throw new Error(`blob ${number} is missing`)
    const { kind, size, data } = checkedRow(row, BLOB, `blob ${number}`)
    this.take(size)
    const kinds = kind.split('+')
    const bytes = kinds.includes('zstd') ? zstdDecompressSync(data, { maxOutputLength: Math.max(1, size) }) : data
    if (bytes.byteLength !== size) throw new Error(`blob ${number} has ${bytes.byteLength} bytes instead of ${size}`)
    return { kinds, bytes }
  }

  /** Restores a long string. `base`: the first key of the run. `texts`: strings of this value that were already read. */
  #putBack(inner: unknown, base: number, texts: Map<string, string>): unknown {
    if (typeof inner !== 'string' || !inner.startsWith(MARK)) return inner
    if (inner.startsWith(MARK + MARK)) return inner.slice(MARK.length)
    const known = texts.get(inner)
    const text = known ?? this.#partOf(base + Number(inner.slice(MARK.length)))
    if (known === undefined) texts.set(inner, text)
    else this.take(text.length)
    return text
  }

  /** Reads a part: a string that has no parts of its own. */
  #partOf(number: number): string {
    const { kinds, bytes } = this.#bytesOf(number)
    const text: unknown = kinds[0] === 'json' && !kinds.includes('parts') ? JSON.parse(textOf(bytes)) : undefined
    if (typeof text !== 'string') throw new Error(`blob ${number} is used as a part, but holds no string`)
    return text
  }

  /** Charges bytes to the budget. Throws when it is used up. */
  take(bytes: number): void {
    this.bytesRead += bytes
    this.#left -= bytes
    if (this.#left < 0) throw new TooManyBytes(`a task or a value exceeds the read limit of ${MAX_READ_BYTES} bytes`)
  }
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
