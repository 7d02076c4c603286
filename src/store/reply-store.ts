import { ManyworldsError } from '../errors.ts'
import type { CachedReply, CacheStore } from '../models/driver/cache.ts'
import { MAX_VALUE_BYTES } from '../protocol/pack.ts'
import type { GroupCommit } from './group-commit.ts'
import { ROW } from './messages.ts'
import type { StoreFile } from './store-thread.ts'

/** Lookups per message. Their replies are copied together, and commits wait meanwhile. */
const MOST_LOOKUPS = 64

interface Lookup {
  readonly key: Uint8Array
  readonly resolve: (reply: CachedReply | undefined) => void
  readonly reject: (error: Error) => void
}

/** The driver's side of a store's cached model replies. SQLite is called only in the writer thread. */
export class ReplyStore implements CacheStore {
  readonly #file: StoreFile
  readonly #commit: GroupCommit
  #lookups: Lookup[] = []
  /** Rejects writes that are not committed yet. */
  readonly #unsafe = new Set<(error: Error) => void>()
  #closed: Error | undefined

  constructor(file: StoreFile, commit: GroupCommit) {
    this.#file = file
    this.#commit = commit
  }

  read(key: Uint8Array): Promise<CachedReply | undefined> {
    if (this.#closed) return Promise.reject(this.#closed)
    return new Promise((resolve, reject) => {
      // Lookups of one turn of the event loop share a message.
      if (this.#lookups.push({ key: ownBytes(key), resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  /** Resolves when the reply is committed. If the key already has a reply, that one stays. */
  write(key: Uint8Array, model: string, { status, headers, body }: CachedReply): Promise<void> {
    if (this.#closed) return Promise.reject(this.#closed)
    const bytes = Buffer.byteLength(body)
    if (bytes > MAX_VALUE_BYTES) return Promise.reject(tooLarge(model, bytes))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unsafe.add(reject)
    this.#commit.add([ROW.cached, ownBytes(key), model, Date.now(), status, JSON.stringify(headers), body])
    this.#commit.afterCommit(() => {
      this.#unsafe.delete(reject)
      resolve()
    })
    return promise
  }

  /** Accepts nothing more. Writes in progress continue. */
  close(): void {
    this.#closed ??= new ManyworldsError('STORE_FAILED', 'the run has ended and its store is closed')
  }

  /** The store can no longer be written. */
  fail(error: Error): void {
    this.#closed = error
    for (const reject of this.#unsafe) reject(error)
    this.#unsafe.clear()
  }

  #send(): void {
    const lookups = this.#lookups
    this.#lookups = []
    if (!this.#closed) {
      for (let from = 0; from < lookups.length; from += MOST_LOOKUPS)
        this.#lookUp(lookups.slice(from, from + MOST_LOOKUPS))
      return
    }
    for (const { reject } of lookups) reject(this.#closed)
  }

  #lookUp(lookups: readonly Lookup[]): void {
    this.#file.lookUp(lookups.map(({ key }) => key)).then(
      (replies) => {
        for (const [place, { resolve }] of lookups.entries()) resolve(replies[place])
      },
      (error: Error) => {
        for (const { reject } of lookups) reject(error)
      },
    )
  }
}

/** Copies a key, because postMessage would clone the whole pool that a small Buffer is part of. */
const ownBytes = (key: Uint8Array) => new Uint8Array(key)

const tooLarge = (model: string, bytes: number) =>
  new ManyworldsError(
    'STORE_FAILED',
    `a reply of model '${model}' has ${bytes} bytes; the cache accepts at most ${MAX_VALUE_BYTES}. Request shorter replies, or use \`cache: false\``,
  )
