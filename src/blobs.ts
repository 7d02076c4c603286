import { createHash } from 'node:crypto'
import type { BlobContent } from './engines/engine.ts'
import { ManyworldsError } from './errors.ts'

/** The largest blob: its length is sent in four bytes. */
export const MAX_BLOB_BYTES: number = 2 ** 32 - 2 ** 20
/** Bytes hashed before the event loop gets its turn. */
const SLICE_BYTES = 4 * 1024 * 1024

const SOURCE: unique symbol = Symbol.for('manyworlds.blob')

/** A blob whose content can be replaced, as runs see it. */
export interface BlobSource {
  /** The current version. */
  current(): Promise<BlobContent>
  /** Calls `listener` for each new version. Returns a function that stops this. */
  watch(listener: () => void): () => void
}

/**
 * Bytes that tasks need and that can be replaced during a run: pass it in `blobs` of the run configuration. For bytes that do
 * not change, pass a Uint8Array.
 *
 * @example
 * const weights = new SharedBlob(first)
 * for await (const response of Runners.streamTask(tasks, { blobs: { weights } })) weights.replace(improve(response))
 */
export class SharedBlob {
  readonly #watchers = new Set<() => void>()
  #bytes: Uint8Array
  #content: Promise<BlobContent> | undefined

  /** The bytes must not change from here on. */
  constructor(bytes: Uint8Array) {
    this.#bytes = checkBytes(bytes)
  }

  /** Replaces the bytes for tasks that ask from now on. Tasks that have asked already keep the old ones. */
  replace(bytes: Uint8Array): void {
    this.#bytes = checkBytes(bytes)
    this.#content = undefined
    for (const changed of this.#watchers) changed()
  }

  /** The current version. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** The SHA-256 of the current version; `ctx.blob()` accepts it too. */
  get sha256(): Promise<string> {
    return this[SOURCE].current().then(({ sha256 }) => sha256)
  }

  get [SOURCE](): BlobSource {
    return {
      current: () => (this.#content ??= contentOf(this.#bytes)),
      watch: (listener) => {
        this.#watchers.add(listener)
        return () => void this.#watchers.delete(listener)
      },
    }
  }
}

/** A value of `blobs` as runs see it. Found by a symbol: a process may hold two copies of this package. */
export const sourceOf = (given: Uint8Array | SharedBlob): BlobSource =>
  (isBytes(given) ? new SharedBlob(given) : given)[SOURCE]

/** Plain bytes in `blobs`, which cannot be replaced. */
export const bytesOf = (
  given: Readonly<Record<string, Uint8Array | SharedBlob>>,
): Readonly<Record<string, Uint8Array | SharedBlob>> =>
  Object.fromEntries(
    Object.entries(given).map(([name, blob]) => [name, blob instanceof SharedBlob ? blob.bytes : blob]),
  )

/** Whether this is a valid value of `blobs`. */
export const isBlob = (value: unknown): value is Uint8Array | SharedBlob =>
  isBytes(value) ? value.byteLength <= MAX_BLOB_BYTES : typeof value === 'object' && value !== null && SOURCE in value

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

function checkBytes(bytes: unknown): Uint8Array {
  if (!isBytes(bytes))
    throw new ManyworldsError('CONFIG_INVALID', `a blob must be a Uint8Array, it is ${String(bytes)}`)
  if (bytes.byteLength > MAX_BLOB_BYTES)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `a blob can have at most ${MAX_BLOB_BYTES} bytes, this one has ${bytes.byteLength}; split it into several blobs`,
    )
  return bytes
}

/** Hashes bytes without blocking the event loop. */
async function contentOf(bytes: Uint8Array): Promise<BlobContent> {
  const hash = createHash('sha256')
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    hash.update(bytes.subarray(at, at + SLICE_BYTES))
  }
  return { sha256: hash.digest('hex'), bytes }
}

/** A blob in messages: the beginning of its hash, and its size. */
export const showBlob = (sha256: string, bytes: number): string =>
  `blob ${sha256.slice(0, 12)} (${(bytes / 1e6).toFixed(bytes < 1e5 ? 3 : 1)} MB)`
