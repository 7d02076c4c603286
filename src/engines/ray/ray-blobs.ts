import { showBlob } from '../../blobs.ts'
import { ManyworldsError } from '../../errors.ts'
import { BlobFiles } from '../blob-files.ts'
import type { BlobContent } from '../engine.ts'
import type { Bridge, BridgeEvent } from './bridge.ts'
import { Fetches, type Receiver } from './fetches.ts'

/**
 * The blobs of one engine, in Ray's object store. Each machine fetches a blob once for all its actors, and stores it as a file.
 * The bridge, a process on this machine, also reads blobs from files.
 */
export class RayBlobs {
  readonly #bridge: () => Bridge
  readonly #notice: (line: string) => void
  readonly #files = new BlobFiles()
  readonly #fetches = new Fetches()
  /** Blobs in the object store. */
  readonly #live = new Map<string, BlobContent>()
  readonly #puts = new Map<string, PromiseWithResolvers<void>>()

  constructor(bridge: () => Bridge, notice: (line: string) => void) {
    this.#bridge = bridge
    this.#notice = notice
  }

  /** The hashes of the blobs that an actor fetches before its process starts. */
  get hashes(): string[] {
    return [...this.#live.keys()]
  }

  async put(blob: BlobContent, receivers: () => readonly Receiver[]): Promise<void> {
    const { sha256 } = blob
    await this.#files.put(blob)
    try {
      const put = Promise.withResolvers<void>()
      this.#puts.set(sha256, put)
      this.#bridge().control({ op: 'put_blob', sha256, path: this.#files.fileOf(sha256) })
      await put.promise
    } finally {
      this.#puts.delete(sha256)
      await this.#files.drop(sha256)
    }
    this.#live.set(sha256, blob)
    const bring = (receiver: Receiver) =>
      this.#fetches.ask(receiver, (request) =>
        this.#bridge().control({ op: 'bring_blob', worker: receiver.worker, sha256, request }),
      )
    await Promise.all(receivers().map(bring))
  }

  drop(sha256: string): void {
    if (this.#live.delete(sha256)) this.#bridge().control({ op: 'drop_blob', sha256 })
  }

  onPut({ sha256, error }: Extract<BridgeEvent, { event: 'blob-put' }>): void {
    const put = this.#puts.get(sha256)
    if (error === undefined) put?.resolve()
    else put?.reject(new ManyworldsError('RAY_FAILED', `it could not be put into Ray's object store: ${error}`))
  }

  onBrought({ request }: Extract<BridgeEvent, { event: 'blob-brought' }>): void {
    this.#fetches.answered(request)
  }

  onMissing({ sha256, text }: Extract<BridgeEvent, { event: 'blob-missing' }>): void {
    const size = this.#live.get(sha256)?.bytes.byteLength
    if (size === undefined) return
    this.#notice(`${showBlob(sha256, size)} could not be stored on ${text}; a worker there gets it over its link`)
  }

  /** The bridge is gone with its blobs. */
  lost(error: Error): void {
    for (const put of this.#puts.values()) put.reject(error)
    this.#live.clear()
  }

  async remove(): Promise<void> {
    await this.#files.remove()
  }
}
