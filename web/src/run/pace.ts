import { remainingMs } from '../../../src/progress/eta.ts'
import { RecentRate } from '../../../src/progress/recent-rate.ts'
import type { RunOverview } from '../../../src/store/stored-task.ts'
import { sortByKey } from './radix-sort.ts'
import type { TaskTable } from './task-table.ts'

/**
 * The speed of a run in progress. It starts with the end times of the session's tasks, so a page that was just opened
 * knows as much as one that was open from the beginning.
 */
export class Pace {
  readonly #rate: RecentRate
  /** The number of tasks that earlier sessions have done. */
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

  /** Adds a later state of the run. The first one may be older than the table. */
  told(overview: RunOverview): void {
    for (; this.#done < doneOf(overview); this.#done++) this.#rate.add()
  }

  /** Rate and remaining time; undefined until there is enough data. */
  now(overview: RunOverview, running: number, at: number) {
    const perSecond = this.#rate.perSecond(at)
    const { total } = overview
    const progress = { total, done: doneOf(overview), restored: this.#restored, running, perSecond }
    return { perSecond, remainingMs: remainingMs(progress) }
  }
}

export const doneOf = ({ counts }: RunOverview): number => Object.values(counts).reduce((sum, count) => sum + count, 0)
