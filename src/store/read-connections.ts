import { existsSync, statSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import type { Begun } from './messages.ts'
import { openForReading } from './open-for-reading.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { storeError } from './store-errors.ts'

/** The store, and the run in it: another run may have its number once it is removed. */
export interface RunInStore {
  readonly path: string
  readonly run: Pick<Begun, 'run' | 'createdAt'>
  /** A connection of whoever made the response, as long as that is open. */
  db?(): DatabaseSync | undefined
}

/** One connection to each store that responses are read from; it is closed when nobody has read for a while. */
const IDLE_MS = 1000
const open = new Map<string, { db: DatabaseSync; inode: number; idle: NodeJS.Timeout }>()

/** Reads from a run. Throws STORE_GONE if the run is no longer there. */
export function withStore<T>(from: RunInStore, read: (db: DatabaseSync) => T): T {
  const { path } = from
  try {
    const { run, createdAt } = from.run
    const db = from.db?.() ?? connection(path)
    if (!prepared(db, 'SELECT 1 FROM _run WHERE run = ? AND created_at = ?').get(run, createdAt)) throw gone(path)
    return read(db)
  } catch (error) {
    throw existsSync(path) ? storeError(error, path, 'read') : gone(path)
  }
}

/** The process ends: whoever closes a store last leaves one file. */
export function closeReaders(): void {
  for (const path of [...open.keys()]) close(path)
}

function connection(path: string): DatabaseSync {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  if (inode === undefined) throw gone(path)
  let store = open.get(path)
  // Another store may have been made in its place.
  if (store && store.inode !== inode) close(path)
  store = open.get(path)
  if (store === undefined) {
    const idle = setTimeout(() => close(path), IDLE_MS).unref()
    store = { db: openForReading(path), inode, idle }
    open.set(path, store)
  }
  store.idle.refresh()
  return store.db
}

function close(path: string): void {
  const store = open.get(path)
  open.delete(path)
  clearTimeout(store?.idle)
  store?.db.close()
}

const gone = (path: string) =>
  new ManyworldsError(
    'STORE_GONE',
    `the run of this response is no longer in ${path}, and its steps were only there; read \`trajectory\` before the run is removed, or use \`store: false\`, with which responses carry their steps`,
  )
