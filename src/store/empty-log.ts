import { statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isSharedStore } from './run-path.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'

/**
 * In WAL mode SQLite creates a log and an index beside a store, even for read-only connections, which cannot remove them.
 * A file that was only read should have no such files beside it, so they are removed when the returned connection is
 * closed. The store of a folder keeps them, because its next run needs them.
 */
export function removingEmptyLog(db: DatabaseSync, path: string): DatabaseSync {
  if (isSharedStore(path)) return db
  const own = db.close.bind(db)
  const close = () => {
    own()
    removeEmptyLog(path)
  }
  return Object.defineProperties(db, {
    close: { value: close },
    [Symbol.dispose]: { value: () => void (db.isOpen && close()) },
  })
}

/**
 * SQLite removes the files itself when the last writable connection closes, and only if it gets the exclusive lock of the
 * store. So they stay if another process has the store open. The log is empty, so nothing is written to the store.
 */
function removeEmptyLog(path: string): void {
  if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size !== 0) return
  try {
    // `mode`: do not create the store if it was removed.
    using db = openFile(Object.assign(pathToFileURL(path), { search: '?mode=rw' }), { timeout: 0 })
    db.prepare('SELECT 1 FROM sqlite_schema').get()
  } catch {
    // The store is locked, was removed, or belongs to another user. The files do no harm.
  }
}
