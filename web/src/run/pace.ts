import { remainingMs } from '../../../src/progress/eta.ts'
import { RecentRate } from '../../../src/progress/recent-rate.ts'
import type { RunOverview } from '../../../src/store/stored-task.ts'
import { sortByKey } from './radix-sort.ts'
import type { TaskTable } from './task-table.ts'

/**
 * How fast a run in progress is. It starts from the times at which the tasks of the session ended, so a page that was opened a moment
 * ago knows as much as one that was open from the beginning.
 */
export class Pace {
  readonly #rate: RecentRate
  /** Tasks that earlier sessions had done. */
  #restored = 0
  #done = 0

  /** `since`: when the session began. */
  constructor(table: TaskTable, since: number) {
    this.#rate = new RecentRate(since)
    const [parent, endedAt] = [table.column('parent'), table.column('endedAt')]
    const ended: number[] = []
    for (let row = 0; row < table.count; row++) {
      if (parent[row] !== 0 || Number.isNaN(endedAt[row])) continue
      this.#done++
      if (endedAt[row]! < since) this.#restored++
      else ended.push(row)
    }
    for (const row of sortByKey(Uint32Array.from(ended), (row) => endedAt[row]!)) {
      this.#rate.add()
      this.#rate.perSecond(endedAt[row]!)
    }
  }

  /** A later state of the run. The first may be older than the table. */
  told(overview: RunOverview): void {
    for (; this.#done < doneOf(overview); this.#done++) this.#rate.add()
  }

  /** Both are undefined until they can be known. */
  now(overview: RunOverview, running: number, at: number) {
    const perSecond = this.#rate.perSecond(at)
    const { total } = overview
    const progress = { total, done: doneOf(overview), restored: this.#restored, running, perSecond }
    return { perSecond, remainingMs: remainingMs(progress) }
  }
}

export const doneOf = ({ counts }: RunOverview): number => Object.values(counts).reduce((sum, count) => sum + count, 0)
