import type sqlite from 'node:sqlite'

/** SQLite of Node itself. Node 22 calls it experimental on stderr, whenever it is first used; users can do nothing about that. */
export const { DatabaseSync } = load()
export type DatabaseSync = sqlite.DatabaseSync

/** Opens a file that may come from anybody: what its schema says is not trusted, and nothing but its rows can be changed. */
export function openFile(
  path: string | URL,
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

const statements = new WeakMap<DatabaseSync, Map<string, sqlite.StatementSync>>()

/** A statement that is asked for many times: preparing it would take longer than what it does. Not for `iterate`. */
export function prepared(db: DatabaseSync, sql: string): sqlite.StatementSync {
  let known = statements.get(db)
  if (known === undefined) statements.set(db, (known = new Map()))
  let statement = known.get(sql)
  if (statement === undefined) known.set(sql, (statement = db.prepare(sql)))
  return statement
}
