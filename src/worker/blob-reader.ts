import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { showBlob } from '../blobs.ts'
import { ManyworldsError } from '../errors.ts'
import type { BlobOpened } from '../protocol/messages.ts'
import type { Asker } from './asker.ts'
import { blobAsking } from './blob-asking.ts'
import type { Requests } from './requests.ts'

/** Bytes read and hashed before the event loop gets its turn. */
const PIECE_BYTES = 1024 * 1024
/** How often to look for a file that is on its way to this machine. */
const LOOK_MS = 100

/**
 * Reads one blob: from the file that the engine put on this machine, else over the link. All bytes are hashed. Requests belong
 * to tasks, so it reads on behalf of one. When that task ends, another can go on where it stopped.
 */
export class BlobReader {
  readonly #blob: BlobOpened
  /** The folder in which the engine puts blobs. Undefined: the engine does not deliver blobs. */
  readonly #folder: string | undefined
  readonly #requests: Requests
  /** The bytes received over the link. */
  #bytes: Uint8Array | undefined
  #hash: Hash | undefined
  #filled = 0
  /** Counts the tasks it was read for over the link; only the last may add bytes. */
  #turn = 0

  constructor(blob: BlobOpened, folder: string | undefined, requests: Requests) {
    this.#blob = blob
    this.#folder = folder
    this.#requests = requests
  }

  /** The result is ignored if the task has ended. */
  async read(task: Asker): Promise<Uint8Array> {
    const bytes = await this.#fromFile(task)
    if (bytes !== undefined) return bytes
    if (task.settled) throw task.whyOver
    return this.#fromLink(task)
  }

  /** Undefined: the file does not exist, and will not be delivered. */
  async #fromFile(task: Asker): Promise<Uint8Array | undefined> {
    if (this.#folder === undefined) return undefined
    const path = join(this.#folder, this.#blob.sha256)
    const file = (await openIfThere(path)) ?? (await this.#awaitFile(task, path))
    if (file === undefined) return undefined
    try {
      return await this.#readFile(file, path)
    } catch (error) {
      if (ManyworldsError.is(error)) throw error
      throw this.#damaged(`cannot be read from ${path}: ${(error as Error).message}`, error)
    } finally {
      await file.close()
    }
  }

  /** The file may be on its way. It is used as soon as it is here, even if other hosts are still waiting for theirs. */
  async #awaitFile(task: Asker, path: string): Promise<FileHandle | undefined> {
    const found = new AbortController()
    let answered = false
    const answer = this.#requests
      .ask(task, blobAsking(task, ['wait', this.#blob.sha256], 'one', found.signal))
      .finally(() => {
        answered = true
      })
    // Ignored once the file is here.
    answer.catch(() => {})
    // A task that has ended gets no answer.
    while (!answered && !task.settled) {
      await Promise.race([answer.catch(() => {}), sleep(LOOK_MS)])
      const file = await openIfThere(path)
      if (file === undefined) continue
      found.abort()
      return file
    }
    if (answered) await answer
    return undefined
  }

  async #readFile(file: FileHandle, path: string): Promise<Uint8Array> {
    const { bytes: size } = this.#blob
    const bytes = newBytes(size)
    const hash = createHash('sha256')
    let at = 0
    while (at < size) {
      const { bytesRead } = await file.read(bytes, at, Math.min(PIECE_BYTES, size - at), at)
      if (bytesRead === 0) throw this.#damaged(`has ${at} of its ${size} bytes in ${path}`)
      hash.update(bytes.subarray(at, at + bytesRead))
      at += bytesRead
    }
    this.#verify(hash, `is damaged in ${path}`)
    return bytes
  }

  async #fromLink(task: Asker): Promise<Uint8Array> {
    const { sha256, bytes: size } = this.#blob
    const turn = ++this.#turn
    this.#bytes ??= newBytes(size)
    this.#hash ??= createHash('sha256')
    const parts = this.#requests.stream(task, blobAsking(task, ['read', sha256, this.#filled], 'parts'))
    for await (const part of parts as AsyncIterable<Uint8Array>) {
      if (turn !== this.#turn) return this.#bytes
      if (this.#filled + part.byteLength > size) break
      this.#bytes.set(part, this.#filled)
      this.#filled += part.byteLength
      this.#hash.update(part)
    }
    if (this.#filled !== size) throw this.#damaged(`did not arrive with its ${size} bytes over the link`)
    this.#verify(this.#hash, 'was damaged on the way over the link')
    return this.#bytes
  }

  #verify(hash: Hash, what: string): void {
    const actual = hash.digest('hex')
    if (actual !== this.#blob.sha256) throw this.#damaged(`${what}: the hash of its content is ${actual}`)
  }

  #damaged(what: string, cause?: unknown): ManyworldsError {
    const { sha256, bytes } = this.#blob
    return new ManyworldsError(
      'BLOB_DAMAGED',
      `${showBlob(sha256, bytes)} ${what}. Check the disk and the memory of this machine, and whether the bytes were changed after they were given to the run`,
      { cause },
    )
  }
}

/** Not zeroed: all of it is written before it is read. */
const newBytes = (size: number) => new Uint8Array(Buffer.allocUnsafeSlow(size).buffer)

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
