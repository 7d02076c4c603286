import { existsSync } from 'node:fs'
import { countReplies, removeReplies } from './cached-replies.ts'
import { StoreDb } from './store-db.ts'
import { storeError } from './store-errors.ts'

/** Pages that one transaction returns to the file system. */
const PIECE_PAGES = 2000
/** The pause between two pieces, in which other drivers can write. */
const PAUSE_MS = 10

export interface CacheSize {
  readonly replies: number
  /** The stored size, after compression. */
  readonly bytes: number
}

/** Counts the cached replies of a store that were last used before this time. */
export function cacheSize(path: string, before: number): CacheSize {
  return existsSync(path) ? inStore(path, (store) => countReplies(store, before)) : { replies: 0, bytes: 0 }
}

/** Removes cached replies that were last used before this time. Runs in progress call their models again. */
export function clearCache(path: string, before: number): void {
  inStore(path, (store) => {
    while (removeReplies(store, before)) pause()
    while (store.returnFreePages(PIECE_PAGES)) pause()
  })
}

function inStore<T>(path: string, work: (store: StoreDb) => T): T {
  try {
    const store = StoreDb.open(path, true)
    try {
      return work(store)
    } finally {
      store.close(false)
    }
  } catch (error) {
    throw storeError(error, path, 'write')
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
}
