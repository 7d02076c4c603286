import { hasReplies, removeReplies } from './cached-replies.ts'
import { partlyRemoved, removePiece } from './remove-run.ts'
import type { StoreDb } from './store-db.ts'

export interface Keep {
  readonly days?: number | undefined
  readonly runs?: number | undefined
}

/** The longest time that a new run spends on removing old ones. The next run continues. */
const BUDGET_MS = 50
const DAY_MS = 24 * 60 * 60 * 1000
const MOST_AT_ONCE = 1000
const PIECE_PAGES = 1000

/**
 * Removes runs that `keep` does not cover, the oldest first, and cached replies that were not used for `keep.days`. Runs in
 * progress stay. So do the runs of trainings, because a training cannot be resumed without them.
 */
export function prune(store: StoreDb, keep: Keep): void {
  const until = performance.now() + BUDGET_MS
  const runs = [...partlyRemoved(store), ...tooOld(store, keep)]
  for (const run of runs) while (removePiece(store, run) === 'more') if (performance.now() > until) return
  const unused = keep.days === undefined ? 0 : Date.now() - keep.days * DAY_MS
  const isUnused = unused > 0 && hasReplies(store, unused)
  if (isUnused) while (removeReplies(store, unused)) if (performance.now() > until) return
  if (runs.length > 0 || isUnused) store.returnFreePages(PIECE_PAGES)
}

/** Returns the oldest runs first. Both queries use the index of runs by time. */
function tooOld(store: StoreDb, { days, runs }: Keep): number[] {
  let before = days === undefined ? 0 : Date.now() - days * DAY_MS
  let row = 0
  if (runs !== undefined) {
    const newest =
      'SELECT created_at AS at, rowid FROM _run WHERE training IS NULL ORDER BY created_at DESC, rowid DESC LIMIT 1 OFFSET ?'
    const first = store.statement(newest).get(runs) as { at: number; rowid: number } | undefined
    if (first && first.at >= before) {
      before = first.at
      row = first.rowid
    }
  }
  const older = `SELECT run FROM _run WHERE training IS NULL AND created_at <= ? AND (created_at < ? OR rowid <= ?) ORDER BY created_at, rowid LIMIT ?`
  return (store.statement(older).all(before, before, row, MOST_AT_ONCE) as { run: number }[]).map(({ run }) => run)
}
