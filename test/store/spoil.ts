import { writeFileSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { serialize } from 'node:v8'
import { vi } from 'vitest'
import { program } from '../../src/cli/program.ts'

/** What a command prints, in this process: there are thousands of them. */
export async function says(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      said[name] += String(text)
      return true
    }),
  )
  try {
    return { code: await program(words), ...said }
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

/** Writes a sound file, and changes it. */
export function changeFile(path: string, sound: Uint8Array, change: (db: DatabaseSync) => void): void {
  writeFileSync(path, sound)
  // Not defensive: whoever attacks is not, either.
  using db = new DatabaseSync(path, { defensive: false } as object)
  db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF')
  change(db)
}

/** Values that do not belong where they stand. */
export const WRONG: readonly SQLInputValue[] = [
  ...[null, -1, 1.5, Number.POSITIVE_INFINITY, 2n ** 62n, 'text', '{"a":1}', '[null]', '[1,'],
  ...[new Uint8Array([1, 2, 3]), serialize([null])],
]

/** Every column of every table. */
export function columnsOf(path: string): { table: string; column: string }[] {
  using db = new DatabaseSync(path, { readOnly: true })
  const tables = db
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '\\_%' ESCAPE '\\'`)
    .all()
  return tables.flatMap(({ name }) =>
    db
      .prepare(`PRAGMA table_info(${name})`)
      .all()
      .map((row) => ({ table: String(name), column: String(row.name) })),
  )
}

/** Sets a column in all rows, or in the first where they must differ; what NOT NULL forbids too. False: SQLite refuses it. */
export function spoil(
  changed: (change: (db: DatabaseSync) => void) => void,
  table: string,
  column: string,
  value: SQLInputValue,
): boolean {
  let done = false
  changed((db) => {
    const { sql } = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(table) as { sql: string }
    const define = (text: string) => {
      db.exec('PRAGMA writable_schema = ON')
      db.prepare('UPDATE sqlite_schema SET sql = ? WHERE name = ?').run(text, table)
      db.exec('PRAGMA writable_schema = RESET')
    }
    define(sql.replaceAll('NOT NULL', ''))
    const first = `rowid = (SELECT min(rowid) FROM ${table})`
    for (const where of ['', `WHERE ${first}`])
      try {
        db.prepare(`UPDATE ${table} SET ${column} = ? ${where}`).run(value)
        done = true
        break
      } catch {
        // A key must differ, and some must be whole numbers.
      }
    define(sql)
  })
  return done
}
