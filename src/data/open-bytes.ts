import { createReadStream } from 'node:fs'
import { pipeline, Readable, type Transform } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError } from './data-error.ts'

/** A source of data: a path, an address (`file:`, `http:`, `https:`), or a stream of bytes. */
export type DataSource = string | URL | AsyncIterable<Uint8Array | string>

const CHUNK_BYTES = 256 * 1024
/** Give up if a server sends nothing for this long. */
const SILENT_MS = 60_000
/** How many bytes are enough to detect the format. */
const HEAD_BYTES = 4

export const isAddress = (source: unknown): boolean => /^https?:\/\//i.test(String(source))

/** The name of the source in messages. An address is shown without its query, which may contain a key. */
export function nameOf(source: DataSource, name: string | undefined): string {
  if (name !== undefined) return name
  if (isAddress(source)) {
    const { origin, pathname } = new URL(String(source))
    return origin + pathname
  }
  if (typeof source === 'string') return source
  return source instanceof URL ? fileURLToPath(source) : 'the stream'
}

export const isStream = (source: DataSource): boolean => typeof source !== 'string' && !(source instanceof URL)

/** Reads the bytes of a source in chunks, decompressed and without a byte order mark. */
export async function* openBytes(
  source: DataSource,
  file: string,
  stop: AbortSignal,
  silentMs = SILENT_MS,
): AsyncGenerator<Buffer> {
  const bytes = isAddress(source) ? fetched(String(source), file, stop, silentMs) : bytesOf(source, file)
  try {
    const head: Buffer[] = []
    let length = 0
    while (length < HEAD_BYTES) {
      const { done, value } = await bytes.next()
      if (done) break
      head.push(value)
      length += value.length
    }
    const first = Buffer.concat(head)
    const whole = followedBy(first, bytes)
    const decompressor = decompressorFor(first)
    yield* withoutMark(decompressor ? decompressed(whole, decompressor(), file) : whole, file)
  } finally {
    await bytes.return(undefined)
  }
}

function bytesOf(source: DataSource, file: string): AsyncGenerator<Buffer> {
  return isStream(source)
    ? fromStream(source as AsyncIterable<Uint8Array | string>, file)
    : fromFile(source as string | URL, file)
}

async function* fromFile(path: string | URL, file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path, { highWaterMark: CHUNK_BYTES })
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

async function* fromStream(stream: AsyncIterable<Uint8Array | string>, file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) {
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))
        throw new TypeError(`the stream returned ${chunk === null ? 'null' : typeof chunk} instead of bytes or text`)
      yield toBuffer(chunk)
    }
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

const toBuffer = (chunk: Uint8Array | string): Buffer =>
  typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)

async function* fetched(url: string, file: string, stop: AbortSignal, silentMs: number): AsyncGenerator<Buffer> {
  const silent = new AbortController()
  const signal = AbortSignal.any([stop, silent.signal])
  /** The timeout applies only while data is awaited: the consumer of rows may take long. */
  const bounded = async <T>(waiting: () => Promise<T>): Promise<T> => {
    const timer = setTimeout(
      () => silent.abort(new Error(`the server sent nothing for ${silentMs / 1000} s`)),
      silentMs,
    )
    return waiting().finally(() => clearTimeout(timer))
  }
  try {
    const response = await bounded(() => fetch(url, { signal }))
    if (!response.ok) throw new Error(`HTTP ${response.status} ${response.statusText}`.trim())
    const chunks = response.body?.[Symbol.asyncIterator]()
    for (;;) {
      const next = await bounded(async () => chunks?.next())
      if (next === undefined || next.done) return
      yield toBuffer(next.value as Uint8Array)
    }
  } catch (cause) {
    throw unreadable(file, cause)
  } finally {
    silent.abort()
  }
}

/** An error with advice for ENOENT and the like. */
export function unreadable(file: string, cause: unknown): DataError {
  if (cause instanceof DataError) return cause
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'file not found (ENOENT); relative paths start at the current folder',
    EISDIR: 'it is a folder (EISDIR); give the path of a file',
    EACCES: 'permission denied (EACCES)',
  }
  const message = cause instanceof Error ? [cause.message, reasonOf(cause)].filter(Boolean).join(': ') : String(cause)
  return new DataError('DATA_UNREADABLE', { file }, known[code ?? ''] ?? `cannot be read: ${message}`, { cause })
}

/** `fetch failed` has its reason in `cause`. */
const reasonOf = ({ cause }: Error): string => (cause instanceof Error ? cause.message : '')

async function* followedBy(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first
  yield* rest
}

/** Detects compression by the first bytes, which works for any file name and for streams. */
function decompressorFor(head: Buffer): (() => Transform) | undefined {
  if (head[0] === 0x1f && head[1] === 0x8b) return createGunzip
  return head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528 ? createZstdDecompress : undefined
}

async function* decompressed(bytes: AsyncIterable<Buffer>, decompressor: Transform, file: string) {
  // Errors of both sides appear in this stream, and destroying it ends the other side too.
  const out = pipeline(Readable.from(bytes, { objectMode: false }), decompressor, () => {})
  try {
    yield* out as AsyncIterable<Buffer>
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError(
      'DATA_INVALID',
      { file },
      `cannot be decompressed: ${(cause as Error).message}; the file is damaged or incomplete`,
      { cause },
    )
  }
}

/** Files that start with these bytes are not UTF-8 text. */
const OTHER_FORMATS: readonly (readonly [head: string, what: string])[] = [
  ['fffe', 'it is text in UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8'],
  ['feff', 'it is text in UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8'],
  ['50415231', 'it is a Parquet file; read it with fromParquet'],
  ['504b0304', 'it is a zip file; unpack it first'],
]

async function* withoutMark(bytes: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of bytes) {
    if (head === undefined) {
      yield chunk
      continue
    }
    head = Buffer.concat([head, chunk])
    if (head.length < HEAD_BYTES) continue
    yield withoutHeadMark(head, file)
    head = undefined
  }
  if (head !== undefined && head.length > 0) yield withoutHeadMark(head, file)
}

function withoutHeadMark(head: Buffer, file: string): Buffer {
  const start = head.subarray(0, HEAD_BYTES).toString('hex')
  const other = OTHER_FORMATS.find(([begin]) => start.startsWith(begin))
  if (other) throw new DataError('DATA_INVALID', { file }, other[1])
  return start.startsWith('efbbbf') ? head.subarray(3) : head
}
