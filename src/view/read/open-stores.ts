import { statSync } from 'node:fs'
import { ManyworldsError } from '../../errors.ts'
import { openForReading } from '../../store/open-for-reading.ts'
import type { DatabaseSync } from '../../store/sqlite.ts'

/** An unused connection is closed after this time. */
const IDLE_MS = 2000

interface OpenStore {
  readonly db: DatabaseSync
  readonly inode: number
  users: number
  idle: NodeJS.Timeout | undefined
}

/** A connection in use. Dispose of it when done. */
export interface StoreLease extends Disposable {
  readonly db: DatabaseSync
}

/** The connections of the viewer: one per file, shared by all requests. */
export class OpenStores implements Disposable {
  readonly #open = new Map<string, OpenStore>()

  take(path: string): StoreLease {
    const store = this.#store(path)
    store.users++
    clearTimeout(store.idle)
    let isDone = false
    return {
      db: store.db,
      [Symbol.dispose]: () => {
        if (isDone) return
        isDone = true
        if (--store.users === 0) store.idle = setTimeout(() => this.#close(path, store), IDLE_MS).unref()
      },
    }
  }

  #store(path: string): OpenStore {
    const inode = statSync(path, { throwIfNoEntry: false })?.ino
    if (inode === undefined) throw new ManyworldsError('STORE_GONE', `${path} was removed`)
    const known = this.#open.get(path)
    // The file may have been deleted and replaced by a new one.
    if (known?.inode === inode && known.db.isOpen) return known
    const store: OpenStore = { db: openForReading(path), inode, users: 0, idle: undefined }
    this.#open.set(path, store)
    return store
  }

  #close(path: string, store: OpenStore): void {
    if (store.users > 0) return
    if (this.#open.get(path) === store) this.#open.delete(path)
    if (store.db.isOpen) store.db.close()
  }

  [Symbol.dispose](): void {
    for (const { db, idle } of this.#open.values()) {
      clearTimeout(idle)
      if (db.isOpen) db.close()
    }
    this.#open.clear()
  }
}
