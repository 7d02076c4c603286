import { refuseOtherSchema, schemaVersion } from './checks.ts'
import { VERSION_2_COLUMNS, VERSION_2_TABLES } from './migrations.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { storeError } from './store-errors.ts'

const BUSY_MS = 5000

/** A store for somebody who only looks: nothing is written to it, and one of an older version stays as it is. */
export function openForReading(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = openFile(path, { readOnly: true, timeout: BUSY_MS })
    refuseOtherSchema(db, path)
    if (schemaVersion(db) < 2) showFirstAsSecond(db)
    return db
  } catch (error) {
    db?.close()
    throw storeError(error, path, 'read')
  }
}

const TABLES = [...new Set(VERSION_2_COLUMNS.map(([table]) => table))]

/** Temporary views, which go before the tables of the same names: a store of version 1 looks as one of version 2. */
const FIRST_AS_SECOND = [
  ...TABLES.map((table) => {
    const added = VERSION_2_COLUMNS.filter(([of]) => of === table)
    const columns = added.map(([, column, type]) => `${/DEFAULT (\S+)/.exec(type)?.[1] ?? 'NULL'} AS ${column}`)
    return `CREATE TEMP VIEW ${table} AS SELECT *, ${columns.join(', ')} FROM main.${table};`
  }),
  ...VERSION_2_TABLES.map(([table, definition]) => {
    const columns = definition.split(',').map((column) => `NULL AS ${column.trim().split(' ')[0]}`)
    return `CREATE TEMP VIEW ${table} AS SELECT ${columns.join(', ')} WHERE 0;`
  }),
].join('\n')

export const showFirstAsSecond = (db: DatabaseSync): void => db.exec(FIRST_AS_SECOND)

export function hideFirstAsSecond(db: DatabaseSync): void {
  for (const table of [...TABLES, ...VERSION_2_TABLES.map(([name]) => name)])
    db.exec(`DROP VIEW IF EXISTS temp.${table}`)
}
