import type { WorkerExit } from '../engines/engine.ts'
import type { Leases } from './leases.ts'
import type { Outcomes } from './outcomes.ts'
import type { Responses } from './responses.ts'
import type { Run } from './run.ts'
import type { SpecialTasks } from './special-tasks.ts'
import { crashError, explain, judge } from './suspects.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

interface Parts {
  readonly leases: Leases
  readonly outcomes: Outcomes
  readonly responses: Responses
  readonly special: SpecialTasks
}

/** Handles tasks that come back without an outcome: the worker was asked to return them, or it is gone. */
export class Losses {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The worker returned these tasks without having started them. */
  returned(worker: WorkerHandle, unstarted: readonly number[]): void {
    const back = this.#parts.leases.takeBack(worker, unstarted)
    putFirst(back.filter((lease) => !this.#isStopped(lease)))
  }

  /** The worker is gone: charges the guilty task, runs suspects apart, and runs all others again. */
  closed(worker: WorkerHandle, exit: WorkerExit): void {
    const { leases, outcomes, special } = this.#parts
    const { guilty, status, error, suspects, waiting, innocent } = judge(worker, exit)
    // A task that has a second lease goes on under that one.
    const lost = leases.lose(worker)
    if (guilty) explain(guilty.entry)
    if (guilty && lost.has(guilty)) outcomes.charge(guilty.entry, status, error ?? crashError(exit))
    const again = (those: readonly Lease[]) =>
      those.filter((lease) => lost.has(lease) && this.#mayRunAgain(lease, exit))
    // Waiting tasks come last: the sub-tasks they wait for may be among the others.
    for (const group of [suspects, waiting]) special.suspect(again(group).map((lease) => lease.entry))
    putFirst(again(innocent))
  }

  /** Answers the task as cancelled if it is being cancelled, or if its run starts nothing more. */
  #isStopped({ entry }: Lease): boolean {
    if (!startsNoMore(entry)) return false
    entry.worker = undefined
    this.#parts.responses.stopped(entry)
    return true
  }

  /** Answers the task if it must not run twice or is being cancelled; then returns false. */
  #mayRunAgain({ entry, started }: Lease, exit: WorkerExit): boolean {
    const { responses } = this.#parts
    if (startsNoMore(entry)) {
      responses.stopped(entry)
      return false
    }
    if (!entry.options.neverRerun || !started) return true
    entry.attempts++
    responses.fail(entry, 'crashed', crashError(exit), 0)
    return false
  }
}

/** The sub-tasks of running tasks go on while a run drains. */
const startsNoMore = ({ cancelling, parent, run }: TaskEntry): boolean =>
  cancelling !== undefined || (run.stopping !== undefined && !parent)

/** These were started before, so they go first in their runs. */
function putFirst(leases: readonly Lease[]): void {
  const byRun = new Map<Run, TaskEntry[]>()
  for (const { entry } of leases) {
    const entries = byRun.get(entry.run)
    if (entries) entries.push(entry)
    else byRun.set(entry.run, [entry])
  }
  for (const [run, entries] of byRun) run.urgent.unshift(entries)
}
