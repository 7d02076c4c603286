import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ManyworldsError } from '../../../errors.ts'

/** A file that was read to its end is truncated. */
const FILE_BYTES = 64 * 1024 * 1024

interface SpoolFile {
  readonly handle: FileHandle
  written: number
  /** Batches in it that were not taken. */
  untaken: number
}

interface Batch {
  readonly file: SpoolFile
  readonly at: number
  readonly length: number
}

/**
 * Batches that wait for their reader, on disk because that may take hours. They cannot wait in Spark, which abandons a query
 * whose results are not fetched for some minutes. The files are unlinked, so they vanish with this process.
 */
export class Spool {
  readonly #batches: Batch[] = []
  #file: SpoolFile | undefined
  #waiting = 0
  #state: 'open' | 'ended' | 'closed' = 'open'
  #error: unknown
  #changed = Promise.withResolvers<void>()

  async add(bytes: Uint8Array): Promise<void> {
    try {
      const file = await this.#fileToWrite()
      await file.handle.writeFile(bytes)
      this.#batches.push({ file, at: file.written, length: bytes.length })
      file.written += bytes.length
      file.untaken++
    } catch (cause) {
      throw new ManyworldsError(
        'SOURCE_FAILED',
        `rows that wait for their turn cannot be kept in ${tmpdir()}: ${(cause as Error).message}; the variable TMPDIR names another folder`,
        { cause },
      )
    }
    this.#waiting += bytes.length
    this.#notify()
  }

  /** There will be no more. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ended'
    this.#notify()
  }

  /** The reader gets this error before the remaining batches: the sooner it is known, the better. */
  fail(error: unknown): void {
    this.#error ??= { error }
    this.#notify()
  }

  /** In the order in which they were added. Undefined: that was all. */
  async take(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#error !== undefined) throw (this.#error as { error: unknown }).error
      if (this.#state === 'closed') return undefined
      const batch = this.#batches.shift()
      if (batch !== undefined) return this.#read(batch)
      if (this.#state === 'ended') return undefined
      await this.#changed.promise
    }
  }

  /** Resolves when fewer bytes wait, or the reader is gone. */
  async drainedTo(bytes: number): Promise<void> {
    while (this.#waiting > bytes && this.#state === 'open') await this.#changed.promise
  }

  /** The reader is gone. */
  async close(): Promise<void> {
    this.#state = 'closed'
    this.#notify()
    const files = new Set(this.#batches.splice(0).map(({ file }) => file))
    if (this.#file) files.add(this.#file)
    this.#file = undefined
    for (const { handle } of files) await handle.close()
  }

  async #fileToWrite(): Promise<SpoolFile> {
    const file = this.#file
    if (file !== undefined && file.written < FILE_BYTES) return file
    if (file !== undefined && file.untaken === 0) await file.handle.close()
    const path = join(tmpdir(), `manyworlds-rows-${randomUUID()}`)
    const handle = await open(path, 'wx+', 0o600)
    this.#file = { handle, written: 0, untaken: 0 }
    await unlink(path)
    return this.#file
  }

  async #read({ file, at, length }: Batch): Promise<Uint8Array> {
    const bytes = new Uint8Array(length)
    for (let read = 0; read < length; ) {
      const { bytesRead } = await file.handle.read(bytes, read, length - read, at + read)
      if (bytesRead === 0)
        throw new ManyworldsError('SOURCE_FAILED', `rows that were kept in ${tmpdir()} are not there any more`)
      read += bytesRead
    }
    file.untaken--
    if (file.untaken === 0 && file !== this.#file) await file.handle.close()
    this.#waiting -= length
    this.#notify()
    return bytes
  }

  #notify(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}
