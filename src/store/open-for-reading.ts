import { refuseOtherSchema, schemaVersion } from './checks.ts'
import { ADDITIONS } from './migrations.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { storeError } from './store-errors.ts'

const BUSY_MS = 5000

/** A store for somebody who only looks: nothing is written to it, and one of an older version stays as it is. */
export function openForReading(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = openFile(path, { readOnly: true, timeout: BUSY_MS })
    refuseOtherSchema(db, path)
    showAsToday(db)
    return db
  } catch (error) {
    db?.close()
    throw storeError(error, path, 'read')
  }
}

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
