import { existsSync, statSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import type { Begun } from './messages.ts'
import { openForReading } from './open-for-reading.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { storeError } from './store-errors.ts'

/** A run in a store. `createdAt` tells it from a later run with the same number. */
export interface RunInStore {
  readonly path: string
  readonly run: Pick<Begun, 'run' | 'createdAt'>
  /** The connection of the RunFile that made the response, if it is still open. */
  db?(): DatabaseSync | undefined
}

/** Responses share one connection per store. It is closed after this time without a read. */
const IDLE_MS = 1000
const open = new Map<string, { db: DatabaseSync; inode: number; idle: NodeJS.Timeout }>()

/** Reads from a run. Throws STORE_GONE if the run was removed. */
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

/** Call this before the process exits: the writer must close last, so that SQLite removes its log. */
export function closeReaders(): void {
  for (const path of [...open.keys()]) close(path)
}

function connection(path: string): DatabaseSync {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  if (inode === undefined) throw gone(path)
  let store = open.get(path)
  // The file may have been deleted and replaced by a new store.
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
    `the run of this response was removed from ${path}, including its steps. Read \`trajectory\` before removing the run, or use \`store: false\` to keep steps in responses`,
  )
