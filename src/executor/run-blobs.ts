import type { BlobSource } from '../blobs.ts'
import type { BlobHold, Blobs } from './blobs.ts'

/**
 * The blobs of one run, by the names that its tasks know them by. A name stands for the version that is current; when that is
 * replaced, the run lets go of the one before, and only tasks that have it still hold it.
 */
export class RunBlobs {
  readonly #blobs: Blobs
  readonly #sources: ReadonlyMap<string, BlobSource>
  /** Of each name the current version, once its hash is known. */
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

  /** What this name stands for now; undefined if the run has no such name. */
  current(name: string): Promise<BlobHold> | undefined {
    return this.#closed ? undefined : this.#current.get(name)
  }

  /** Resolves when the hashes of all that it has now are known. */
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
    // After the new one, which may have the same bytes.
    void now.then(async () => (await before)?.release())
  }
}
