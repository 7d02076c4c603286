import { createHash, type Hash } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import type { BlobFolder, IncomingBlob } from '../blob-folder.ts'
import type { HostToDriver } from '../network/host-messages.ts'

const REASON_CHARS = 1000

interface Coming {
  readonly sha256: string
  readonly bytes: number
  readonly hash: Hash
  file: IncomingBlob | undefined
  /** Bytes received; and the chain of writes. */
  got: number
  work: Promise<void>
  pieces: number
  failed: boolean
}

export interface IntakeHooks {
  say(message: HostToDriver): void
  /** All received bytes are written: there is room for more. */
  taken(): void
  /** The driver broke the protocol. */
  refuse(what: string): void
}

/** Receives the blobs of one driver and writes them to files as they arrive. */
export class BlobIntake {
  readonly #folder: BlobFolder
  readonly #hooks: IntakeHooks
  #coming: Coming | undefined
  #ended = false

  constructor(folder: BlobFolder, hooks: IntakeHooks) {
    this.#folder = folder
    this.#hooks = hooks
  }

  async offer(sha256: string, bytes: number): Promise<void> {
    if (this.#coming) return this.#hooks.refuse('an offer of a blob while another is being sent')
    if (this.#folder.use(sha256, this)) return this.#hooks.say({ type: 'blob-have', sha256 })
    const rest = { file: undefined, got: 0, work: Promise.resolve(), pieces: 0, failed: false }
    const coming: Coming = { sha256, bytes, hash: createHash('sha256'), ...rest }
    this.#coming = coming
    try {
      await checkRoom(this.#folder.path, bytes)
      coming.file = await this.#folder.create(sha256)
    } catch (error) {
      this.#coming = undefined
      return this.#refuse(sha256, error as Error)
    }
    if (this.#ended) return void coming.file.close()
    if (bytes > 0) this.#hooks.say({ type: 'blob-send', sha256 })
    else void this.#finish(coming)
  }

  /** A piece of the requested blob. False: send no more until `taken`. */
  piece(piece: Uint8Array): boolean {
    const coming = this.#coming
    const size = piece.byteLength
    if (!coming?.file || size === 0 || coming.got + size > coming.bytes) {
      this.#hooks.refuse('bytes of a blob that were not asked for')
      return true
    }
    coming.got += size
    coming.pieces++
    coming.work = coming.work.then(() => this.#take(coming, piece))
    return false
  }

  async drop(sha256: string): Promise<void> {
    await this.#folder.drop(sha256, this)
  }

  /** The driver is gone. */
  async end(): Promise<void> {
    this.#ended = true
    await this.#coming?.work
    await this.#coming?.file?.close()
    await this.#folder.leave(this)
  }

  async #take(coming: Coming, piece: Uint8Array): Promise<void> {
    try {
      if (!coming.failed) {
        coming.hash.update(piece)
        await coming.file!.write(piece)
      }
    } catch (error) {
      coming.failed = true
      this.#refuse(coming.sha256, error as Error)
    }
    if (--coming.pieces > 0) return
    this.#hooks.taken()
    if (coming.got < coming.bytes) return
    if (coming.failed) await this.#close(coming)
    else await this.#finish(coming)
  }

  async #finish(coming: Coming): Promise<void> {
    const { sha256, hash, file } = coming
    try {
      const actual = hash.digest('hex')
      if (actual !== sha256) throw new Error(`its content is ${actual.slice(0, 12)}…, not ${sha256.slice(0, 12)}…`)
      await file!.finish(this)
    } catch (error) {
      await this.#close(coming)
      return this.#refuse(sha256, error as Error)
    }
    await this.#close(coming)
    this.#hooks.say({ type: 'blob-have', sha256 })
  }

  /** There is room for another. */
  async #close({ file }: Coming): Promise<void> {
    await file!.close().catch(() => {})
    this.#coming = undefined
  }

  #refuse(sha256: string, { message }: Error): void {
    this.#hooks.say({ type: 'blob-refuse', sha256, reason: message.slice(0, REASON_CHARS) })
  }
}

/** Refuses a blob that does not fit. If the disk fills up meanwhile, writing fails. */
async function checkRoom(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free < bytes) throw new Error(`ENOSPC: no space left on device: ${free} bytes are free in ${folder}`)
}
