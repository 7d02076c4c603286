import type sqlite from 'node:sqlite'

/** node:sqlite, without the ExperimentalWarning that Node 22 prints. */
export const { DatabaseSync } = load()
export type DatabaseSync = sqlite.DatabaseSync

/** Opens a file that may be hostile: its schema is not trusted and cannot be changed by SQL. */
export function openFile(
  path: string | URL,
  options: { readonly readOnly?: boolean; readonly timeout: number },
): DatabaseSync {
  // Older versions of Node ignore `defensive`.
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

/** A prepared statement, cached per connection. Don't `iterate` over one: two loops would share its state. */
export function prepared(db: DatabaseSync, sql: string): sqlite.StatementSync {
  let known = statements.get(db)
  if (known === undefined) statements.set(db, (known = new Map()))
  let statement = known.get(sql)
  if (statement === undefined) known.set(sql, (statement = db.prepare(sql)))
  return statement
}
