import { statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isSharedStore } from './run-path.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'

/**
 * In WAL mode SQLite creates files beside a store even for readers, who cannot remove them. Nobody expects them beside a file that was
 * only looked at, so they are removed when the returned connection is closed. The store of a folder keeps them: its next run needs them.
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
 * Lets SQLite do it: the last connection that may write removes the files. It does so only with the exclusive lock of the store, so
 * they stay if anybody has it open. An empty log has nothing that would be written to the store.
 */
function removeEmptyLog(path: string): void {
  if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size !== 0) return
  try {
    // `mode`: do not create the store if it was removed.
    using db = openFile(Object.assign(pathToFileURL(path), { search: '?mode=rw' }), { timeout: 0 })
    db.prepare('SELECT 1 FROM sqlite_schema').get()
  } catch {
    // The store is locked, was removed, or belongs to somebody else. The files do no harm.
  }
}
