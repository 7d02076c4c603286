import { deleteRun } from './remove-run.ts'
import type { StoreDb } from './store-db.ts'

export interface Keep {
  readonly days?: number | undefined
  readonly runs?: number | undefined
}

/** A new run does not wait longer than this for old ones to be removed; the next one goes on with it. */
const BUDGET_MS = 50
const DAY_MS = 24 * 60 * 60 * 1000

/** Removes runs that nobody wants to keep, the oldest first. Runs that are going on stay. */
export function prune(store: StoreDb, { days, runs }: Keep): void {
  const until = performance.now() + BUDGET_MS
  const before = days === undefined ? 0 : Date.now() - days * DAY_MS
  const list = store
    .statement(
      `SELECT run FROM _run WHERE created_at < ?1 OR run IN (SELECT run FROM _run ORDER BY created_at DESC, run DESC LIMIT -1 OFFSET ?2)
       ORDER BY created_at, run LIMIT 100`,
    )
    .all(before, runs ?? 2 ** 31) as { run: number }[]
  for (const { run } of list) {
    store.transact(false, () => deleteRun(store, run))
    if (performance.now() > until) return
  }
  if (list.length > 0) store.db.exec('PRAGMA incremental_vacuum(1000)')
}
