import type { Outcome } from '../../grade/outcome.ts'
import { ascending } from '../ascending.ts'
import { ROLLOUTS, type RolloutOptions, rolloutOf } from '../rollout-rows.ts'
import { prepared } from '../sqlite.ts'
import { isWhole } from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

export interface OutcomePage {
  readonly outcomes: readonly Outcome[]
  /** The number after which the next page begins; undefined: this is the last page. */
  readonly next: number | undefined
}

/** The outcomes of the run's own tasks after a number, including tasks that were not run. */
export function outcomePage(run: PagedRun, after: number, limit: number, wanted: RolloutOptions = {}): OutcomePage {
  const sql = `${ROLLOUTS} LIMIT ?`
  return run.reading(() => {
    const rows = ascending(
      prepared(run.db, sql).all(run.key(0), run.key(after + 1), run.range[1], limit),
      ({ task }) => task,
      run.key(after),
      'a rollout',
    )
    const outcomes = rows.map((row) => {
      run.blobs.refill()
      return rolloutOf(row, run.blobs, wanted)
    })
    const last = rows.at(-1)?.task
    if (last !== undefined && !isWhole(last)) throw new Error('`task` of a rollout is not a whole number')
    return { outcomes, next: rows.length < limit ? undefined : Number(last) - run.key(0) }
  })
}
