import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refuseOtherSchema, schemaVersion } from './checks.ts'
import { removingEmptyLog } from './empty-log.ts'
import { ADDITIONS } from './migrations.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { cannotOpen, storeError } from './store-errors.ts'

const BUSY_MS = 5000

/** Opens a store read-only. A store of an older version is not migrated. */
export function openForReading(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = openReadOnly(path)
    refuseOtherSchema(db, path)
    addCompatViews(db)
    return removingEmptyLog(db, path)
  } catch (error) {
    db?.close()
    throw storeError(error, path, 'read')
  }
}

/**
 * In WAL mode SQLite creates files beside the store even for readers. If it cannot, on a read-only disk or in another
 * user's folder, and no log exists, the store is opened as immutable.
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

/** Whether the log may hold rows that are not in the file yet. */
const hasLog = (path: string) => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Makes a store of an older version look like the current one, so that all versions share the same queries: temporary
 * views hide the tables of the same names, and add the missing columns.
 */
export function addCompatViews(db: DatabaseSync): void {
  const newer = Object.entries(ADDITIONS).filter(([version]) => Number(version) > schemaVersion(db))
  const columns = newer.flatMap(([, additions]) => additions.columns)
  const missing = new Map(newer.flatMap(([, { tables }]) => tables))
  for (const table of new Set(columns.map(([table]) => table))) {
    // A missing table is created below, with all its columns.
    if (missing.has(table)) continue
    const added = columnsOf(table).map(
      ([, column, type]) => `${/DEFAULT (\S+)/.exec(type)?.[1] ?? 'NULL'} AS ${column}`,
    )
    db.exec(`CREATE TEMP VIEW ${table} AS SELECT *, ${added.join(', ')} FROM main.${table}`)
  }
  for (const [table, definition] of missing) {
    const own = definition.split(',').map((column) => column.trim().split(' ')[0])
    const all = [...own, ...columnsOf(table).map(([, column]) => column)].map((column) => `NULL AS ${column}`)
    db.exec(`CREATE TEMP VIEW ${table} AS SELECT ${all.join(', ')} WHERE 0`)
  }

  function columnsOf(table: string) {
    return columns.filter(([of]) => of === table)
  }
}

export function dropCompatViews(db: DatabaseSync): void {
  for (const { name } of db.prepare(`SELECT name FROM sqlite_temp_schema WHERE type = 'view'`).all())
    db.exec(`DROP VIEW temp.${String(name)}`)
}
