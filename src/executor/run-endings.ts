import type { AgentLoading } from './agent-loading.ts'
import type { Fleet } from './fleet.ts'
import type { Intake } from './intake.ts'
import type { Leases } from './leases.ts'
import type { Profiles } from './profiles.ts'
import type { Responses } from './responses.ts'
import type { Run, StopReason } from './run.ts'
import type { SpecialTasks } from './special-tasks.ts'
import type { TaskEntry } from './task-entry.ts'

interface Parts {
  readonly intake: Intake
  readonly fleet: Fleet
  readonly responses: Responses
  readonly loading: AgentLoading
  readonly special: SpecialTasks
  readonly profiles: Profiles
  readonly leases: Leases
  /** How long a worker may take to notice a cancellation. */
  readonly cancelSeenMs: number
}

/** Ends runs: finished, stopped, drained or failed. In each case every task is answered, or the caller gets the error. */
export class RunEndings {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  stop(run: Run, reason: 'cancelled' | 'deadline'): void {
    run.onStop(0)
    const isDraining = run.drainTimer !== undefined || run.stopping === 'budget'
    if (run.over || (run.stopping !== undefined && !isDraining)) return
    run.stopping = reason
    run.sourceState = 'ended'
    this.#closeSource(run, reason)
    this.#cancelAll(run, reason)
    this.endIfFinished(run)
  }

  /** Lets running tasks finish, within `graceMs` if it is given. */
  drain(run: Run, reason: 'cancelled' | 'budget', graceMs?: number): void {
    if (graceMs !== undefined) run.onStop(graceMs)
    if (run.over || (run.stopping !== undefined && run.stopping !== 'budget')) return
    run.stopping = reason
    run.sourceState = 'ended'
    this.#closeSource(run, reason)
    // Running tasks may need their sub-tasks to finish.
    const first = run.urgent.drain()
    run.urgent.unshift(first.filter(({ parent }) => parent !== undefined))
    for (const entry of first) if (!entry.parent) this.cancel(entry, reason)
    for (const entry of this.#entriesOf(run)) if (!entry.lease && !entry.parent) this.cancel(entry, reason)
    this.endIfFinished(run)
    if (!run.over && graceMs !== undefined)
      run.drainTimer = setTimeout(() => this.#cancelAll(run, 'cancelled'), graceMs)
  }

  fail(run: Run, error: Error): void {
    run.onStop(0)
    if (run.over) return
    run.stopping = 'failed'
    run.error = error
    run.sourceState = 'ended'
    run.source.close()
    run.over = true
    this.#cancelAll(run, 'cancelled')
    this.#end(run)
  }

  endIfFinished(run: Run): void {
    if (run.over || !run.finished) return
    run.over = true
    this.#end(run)
  }

  /** Cancels a task at its worker, or answers it at once if it is not running. */
  cancel(entry: TaskEntry, reason: StopReason): void {
    if (entry.settled) return
    entry.cancelling = reason
    clearTimeout(entry.retryTimer)
    entry.run.retrying.delete(entry)
    if (!entry.lease) return this.#parts.responses.cancelled(entry)
    const leases = entry.twin ? [entry.lease, entry.twin] : [entry.lease]
    // Don't wait for a disconnected worker: it gets the cancellation when it is back.
    if (leases.every(({ worker }) => worker.isAway)) {
      this.#parts.leases.abandon(entry)
      return this.#parts.responses.cancelled(entry)
    }
    for (const { worker, id } of leases) {
      worker.flush()
      worker.cancel(id, reason === 'deadline' ? reason : 'cancelled', this.#parts.cancelSeenMs)
    }
  }

  /** Cancels submitted tasks that were not read, except those with a stored response of an earlier session. */
  #closeSource(run: Run, reason: StopReason): void {
    const { responses, intake } = this.#parts
    // Keeps the run from ending with the first of them, if nothing else of it is live.
    run.live++
    for (const item of run.source.close())
      if (item.restored) responses.restored(run, item)
      else this.cancel(intake.makeEntry(run, item), reason)
    run.live--
  }

  #cancelAll(run: Run, reason: 'cancelled' | 'deadline'): void {
    for (const entry of [...run.urgent.drain(), ...this.#entriesOf(run)]) this.cancel(entry, reason)
  }

  /** All unsettled entries of a run, except the urgent ones. */
  #entriesOf(run: Run): TaskEntry[] {
    const { loading, special, fleet } = this.#parts
    const entries = [...run.ready.drain(), ...run.retrying, ...loading.heldOf(run), ...special.of(run)]
    for (const worker of fleet.workers)
      for (const { entry } of worker.leases.values()) if (entry.run === run) entries.push(entry)
    return entries
  }

  #end(run: Run): void {
    const { intake, fleet, profiles } = this.#parts
    clearTimeout(run.deadlineTimer)
    clearTimeout(run.drainTimer)
    intake.runs.splice(intake.runs.indexOf(run), 1)
    run.options.signal?.removeEventListener('abort', run.onAbort)
    run.blobs?.close()
    const forgotten = profiles.forget(run)
    for (const worker of fleet.workers) worker.forget(forgotten)
    if (intake.runs.length === 0) fleet.keepAlive(false)
    run.sink.end(run.error, run)
  }
}
