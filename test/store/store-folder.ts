import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { onTestFinished } from 'vitest'

/** A folder for the run files of one test, and a ledger in which tasks write that they ran. */
export function storeFolder() {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-store-'))
  onTestFinished(() => rmSync(store, { recursive: true, force: true }))
  const ledger = join(store, 'ledger.txt')
  return {
    store,
    ledger,
    /** The file that a run of the folder is in. */
    file: (_runId: string) => join(store, 'store.sqlite'),
    /** A file for one run alone. */
    own: (runId: string) => join(store, `${runId}.sqlite`),
    /** Ids of tasks that ran, in order, once for each time. */
    ran: () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trimEnd().split('\n').filter(Boolean) : []),
    forget: () => rmSync(ledger, { force: true }),
  }
}

/** Asks a run file as any SQLite tool would. */
export function query(file: string, sql: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 30_000 })
  return db
    .prepare(sql)
    .all(...values)
    .map((row) => ({ ...row }))
}

/** Writes to a run file, as somebody else might. */
export function changed(file: string, sql: string, ...values: SQLInputValue[]): void {
  using db = new DatabaseSync(file, { timeout: 30_000 })
  db.prepare(sql).run(...values)
}
