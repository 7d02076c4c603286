import type { WorkerExit } from '../engines/engine.ts'
import { type Leases, ranMs } from './leases.ts'
import type { Outcomes } from './outcomes.ts'
import type { Responses } from './responses.ts'
import type { Run } from './run.ts'
import type { SpecialTasks } from './special-tasks.ts'
import { crashError, explain, FREE_RERUNS, judge, rerunLimitError } from './suspects.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

interface Parts {
  readonly leases: Leases
  readonly outcomes: Outcomes
  readonly responses: Responses
  readonly special: SpecialTasks
}

/** A task that was returned more often than this runs alone, where its start is announced: then it cannot be returned. */
const RETURNS = 3

/** Handles tasks that come back without an outcome: the worker was asked to return them, or it is gone. */
export class Losses {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The worker returned these tasks without having started them. Throws if one of them has started. */
  returned(worker: WorkerHandle, unstarted: readonly number[]): void {
    const { leases, special } = this.#parts
    for (const id of unstarted)
      if (worker.leases.get(id)?.started) throw new RangeError(`lease ${id} was returned after its task had started`)
    const back = leases.takeBack(worker, unstarted)
    const again = back.filter((lease) => !this.#isStopped(lease) && this.#mayGoOn(lease.entry, undefined))
    const isOften = ({ entry }: Lease) => ++entry.returns > RETURNS
    const often = new Set(again.filter(isOften))
    for (const { entry } of often) special.runAlone(entry)
    putFirst(again.filter((lease) => !often.has(lease)))
  }

  /** The worker is gone: charges the guilty task, runs suspects apart, and runs all others again. */
  closed(worker: WorkerHandle, exit: WorkerExit): void {
    const { leases, outcomes, special } = this.#parts
    const { guilty, status, error, runMs, suspects, waiting, innocent } = judge(worker, exit)
    // A task that has a second lease goes on under that one.
    const lost = leases.lose(worker)
    if (guilty) explain(guilty.entry)
    if (guilty && lost.has(guilty))
      outcomes.charge(guilty.entry, status, error ?? crashError(exit), ranMs(guilty, runMs))
    // A crash that has a culprit is paid for by its attempts, so it does not count against the others; but a task could ask for
    // new culprits without end.
    const counts = ({ entry }: Lease) => guilty === undefined || isBelow(guilty.entry, entry)
    const again = (those: readonly Lease[]) =>
      those.filter((lease) => lost.has(lease) && this.#mayRunAgain(lease, exit, counts(lease)))
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
  #mayRunAgain(lease: Lease, exit: WorkerExit, counts: boolean): boolean {
    const { responses } = this.#parts
    const { entry, started } = lease
    if (startsNoMore(entry)) {
      responses.stopped(entry, ranMs(lease))
      return false
    }
    if (!entry.options.neverRerun || !started) return !counts || this.#mayGoOn(entry, exit)
    entry.attempts++
    responses.fail(entry, 'crashed', crashError(exit), ranMs(lease))
    return false
  }

  /** Answers the task if it was given out too often. */
  #mayGoOn(entry: TaskEntry, exit: WorkerExit | undefined): boolean {
    if (++entry.freeReruns <= FREE_RERUNS) return true
    entry.attempts++
    this.#parts.responses.fail(entry, 'crashed', rerunLimitError(exit), 0)
    return false
  }
}

/** The sub-tasks of running tasks go on while a run drains. */
const startsNoMore = ({ cancelling, parent, run }: TaskEntry): boolean =>
  cancelling !== undefined || (run.stopping !== undefined && !parent)

/** Whether this is a sub-task of that task, or of one of its sub-tasks. */
function isBelow({ parent }: TaskEntry, ancestor: TaskEntry): boolean {
  return parent !== undefined && (parent === ancestor || isBelow(parent, ancestor))
}

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
