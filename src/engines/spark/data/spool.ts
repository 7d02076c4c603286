import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ManyworldsError } from '../../../errors.ts'

/** The size at which the next file is begun. A full file is closed, which deletes it, once all of it was read. */
const FILE_BYTES = 64 * 1024 * 1024

interface SpoolFile {
  readonly handle: FileHandle
  written: number
  /** The number of its batches that were not read yet. */
  untaken: number
}

interface Batch {
  readonly file: SpoolFile
  readonly at: number
  readonly length: number
}

/**
 * A queue of batches on disk, because batches may wait for hours. They cannot wait in Spark, which abandons a query whose results
 * are not fetched for some minutes. The files are unlinked when they are made, so they vanish with this process.
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
        `rows that wait to be processed cannot be kept in ${tmpdir()}: ${(cause as Error).message}; choose another folder with TMPDIR`,
        { cause },
      )
    }
    this.#waiting += bytes.length
    this.#notify()
  }

  /** No more batches will be added. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ended'
    this.#notify()
  }

  /** The reader gets this error instead of the remaining batches, so that it is known early. */
  fail(error: unknown): void {
    this.#error ??= { error }
    this.#notify()
  }

  /** The next batch, in the order in which they were added. Undefined: there are no more. */
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

  /** Resolves when at most so many bytes wait, or the spool is closed. */
  async drainedTo(bytes: number): Promise<void> {
    while (this.#waiting > bytes && this.#state === 'open') await this.#changed.promise
  }

  /** Drops what was not read. */
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
        throw new ManyworldsError(
          'SOURCE_FAILED',
          `rows that were kept in ${tmpdir()} are missing: the file is shorter than it was`,
        )
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
