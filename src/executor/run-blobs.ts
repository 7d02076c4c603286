import type { BlobSource } from '../blobs.ts'
import type { BlobHold, Blobs } from './blobs.ts'

/**
 * The blobs of one run, by name. A name stands for its current version. When that is replaced, the run releases the previous
 * version, and only tasks that already use it still hold it.
 */
export class RunBlobs {
  readonly #blobs: Blobs
  readonly #sources: ReadonlyMap<string, BlobSource>
  /** The current version of each name, once its hash is known. */
  readonly #current = new Map<string, Promise<BlobHold>>()
  readonly #unwatch: (() => void)[] = []
  #closed = false

  constructor(blobs: Blobs, sources: ReadonlyMap<string, BlobSource>) {
    this.#blobs = blobs
    this.#sources = sources
    for (const [name, source] of sources) {
      this.#renew(name)
      this.#unwatch.push(source.watch(() => this.#renew(name)))
    }
  }

  get names(): string[] {
    return [...this.#sources.keys()]
  }

  /** The current version of this name; undefined if the run has no such name. */
  current(name: string): Promise<BlobHold> | undefined {
    return this.#closed ? undefined : this.#current.get(name)
  }

  /** Resolves when the hashes of all current versions are known. */
  async ready(): Promise<void> {
    await Promise.all(this.#current.values())
  }

  /** The run is over. */
  close(): void {
    this.#closed = true
    for (const unwatch of this.#unwatch) unwatch()
    for (const version of this.#current.values()) void version.then((hold) => hold.release())
  }

  #renew(name: string): void {
    const before = this.#current.get(name)
    const now = this.#sources
      .get(name)!
      .current()
      .then((content) => this.#blobs.hold(content))
    this.#current.set(name, now)
    // Release it after holding the new one, which may have the same bytes.
    void now.then(async () => (await before)?.release())
  }
}
