import { showBlob } from '../blobs.ts'
import type { BlobContent, RuntimeEngine } from '../engines/engine.ts'

/** How long the engine keeps a blob that nobody uses: the next run may use the same one. */
const LINGER_MS = 5000

/** The right to a blob, for as long as it is not released. */
export interface BlobHold {
  readonly content: BlobContent
  release(): void
}

interface Live {
  readonly content: BlobContent
  /** Whether the engine has brought it to the workers. */
  readonly brought: Promise<boolean>
  holds: number
  dropTimer: NodeJS.Timeout | undefined
}

/**
 * The blobs that the workers of one engine can read. Each is given to the engine once, however many holders it has, and
 * dropped after the last of them has released it.
 */
export class Blobs {
  readonly #engine: RuntimeEngine
  readonly #notice: (line: string) => void
  readonly #live = new Map<string, Live>()
  /** Blobs that the engine is removing. */
  readonly #dropping = new Map<string, Promise<void>>()
  #closed = false

  constructor(engine: RuntimeEngine, notice: (line: string) => void) {
    this.#engine = engine
    this.#notice = notice
  }

  hold(content: BlobContent): BlobHold {
    const live = this.#live.get(content.sha256) ?? this.#put(content)
    clearTimeout(live.dropTimer)
    live.holds++
    let released = false
    return {
      content: live.content,
      release: () => {
        if (released) return
        released = true
        if (--live.holds === 0 && !this.#closed) this.#dropLater(live)
      },
    }
  }

  /** The blob, if it has a holder. */
  find(sha256: string): BlobContent | undefined {
    const live = this.#live.get(sha256)
    return live && live.holds > 0 ? live.content : undefined
  }

  /** Resolves with true when the present workers have it; with false if they must get it over their links. */
  async brought(sha256: string): Promise<boolean> {
    return (await this.#live.get(sha256)?.brought) ?? false
  }

  /** The engine is about to stop: no holder needs its blobs any more. */
  close(): void {
    this.#closed = true
    for (const live of this.#live.values()) this.#drop(live)
  }

  #put(content: BlobContent): Live {
    const live = { content, brought: this.#bring(content), holds: 0, dropTimer: undefined }
    this.#live.set(content.sha256, live)
    return live
  }

  async #bring(content: BlobContent): Promise<boolean> {
    const { sha256, bytes } = content
    if (this.#engine.putBlob === undefined || this.#closed) return false
    try {
      await this.#dropping.get(sha256)
      await this.#engine.putBlob(content)
      return true
    } catch (error) {
      if (!this.#closed)
        this.#notice(
          `the ${this.#engine.name} engine could not deliver ${showBlob(sha256, bytes.byteLength)}: ${(error as Error).message}; workers that need it will get it over their links`,
        )
      return false
    }
  }

  #dropLater(live: Live): void {
    live.dropTimer = setTimeout(() => this.#drop(live), LINGER_MS)
    live.dropTimer.unref()
  }

  #drop({ content: { sha256 }, brought, dropTimer }: Live): void {
    clearTimeout(dropTimer)
    this.#live.delete(sha256)
    // If it cannot be removed now, it is removed when the engine stops.
    const dropped = brought
      .then(async (isThere) => {
        if (isThere) await this.#engine.dropBlob?.(sha256)
      })
      .catch(() => {})
      .then(() => {
        if (this.#dropping.get(sha256) === dropped) this.#dropping.delete(sha256)
      })
    this.#dropping.set(sha256, dropped)
  }
}
