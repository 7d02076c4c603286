import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refuseOtherSchema, schemaVersion } from './checks.ts'
import { ADDITIONS } from './migrations.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { cannotOpen, storeError } from './store-errors.ts'

const BUSY_MS = 5000

/** A store for somebody who only looks: nothing is written to it, and one of an older version stays as it is. */
export function openForReading(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = openReadOnly(path)
    refuseOtherSchema(db, path)
    showAsToday(db)
    return db
  } catch (error) {
    db?.close()
    throw storeError(error, path, 'read')
  }
}

/**
 * SQLite makes files beside a store also for those who only read it. Where it cannot, on a read-only disk or in a folder
 * of another user, and nobody writes to the store, it can be read as a file that does not change.
 */
function openReadOnly(path: string): DatabaseSync {
  const options = { readOnly: true, timeout: BUSY_MS } as const
  const db = openFile(path, options)
  try {
    db.prepare('SELECT 1 FROM sqlite_schema').get()
    return db
  } catch (error) {
    db.close()
    if (!cannotOpen(error) || canWriteIn(dirname(path)) || hasLog(path)) throw error
    return openFile(Object.assign(pathToFileURL(path), { search: '?immutable=1' }), options)
  }
}

function canWriteIn(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Whether rows may be in the log that are not in the file. */
const hasLog = (path: string) => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Temporary views, which go before the tables of the same names: a store of an older version looks as one of today, and
 * there is one set of queries for all.
 */
export function showAsToday(db: DatabaseSync): void {
  const newer = Object.entries(ADDITIONS).filter(([version]) => Number(version) > schemaVersion(db))
  const added = newer.flatMap(([, { columns }]) => columns)
  for (const table of new Set(added.map(([table]) => table))) {
    const columns = added
      .filter(([of]) => of === table)
      .map(([, column, type]) => `${/DEFAULT (\S+)/.exec(type)?.[1] ?? 'NULL'} AS ${column}`)
    db.exec(`CREATE TEMP VIEW ${table} AS SELECT *, ${columns.join(', ')} FROM main.${table}`)
  }
  for (const [table, definition] of newer.flatMap(([, { tables }]) => tables)) {
    const columns = definition.split(',').map((column) => `NULL AS ${column.trim().split(' ')[0]}`)
    db.exec(`CREATE TEMP VIEW ${table} AS SELECT ${columns.join(', ')} WHERE 0`)
  }
}

export function showAsItIs(db: DatabaseSync): void {
  for (const { name } of db.prepare(`SELECT name FROM sqlite_temp_schema WHERE type = 'view'`).all())
    db.exec(`DROP VIEW temp.${String(name)}`)
}
