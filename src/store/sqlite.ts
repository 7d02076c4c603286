import type sqlite from 'node:sqlite'

/** SQLite of Node itself. Node 22 calls it experimental on stderr, whenever it is first used; users can do nothing about that. */
export const { DatabaseSync } = load()
export type DatabaseSync = sqlite.DatabaseSync

/** Opens a file that may come from anybody: what its schema says is not trusted, and nothing but its rows can be changed. */
export function openFile(
  path: string,
  options: { readonly readOnly?: boolean; readonly timeout: number },
): DatabaseSync {
  // A Node that does not know `defensive` passes over it.
  const db = new DatabaseSync(path, { ...options, defensive: true } as sqlite.DatabaseSyncOptions)
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON')
  return db
}

function load(): typeof sqlite {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}
