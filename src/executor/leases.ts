import type { Fleet } from './fleet.ts'
import type { Profiles } from './profiles.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

interface Hooks {
  /** The lease has ended, for whatever reason, and with it the requests that its task made. */
  over(lease: Lease): void
}

/**
 * Which worker has which task. Leases begin and end only here, and a worker's load follows from them. Only outcomes under a
 * live lease count.
 *
 * A task has one lease, `entry.lease`. A straggler may have a second lease at another worker, `entry.twin`: see
 * `stragglers.ts`. When one of the two ends, the other becomes `entry.lease`.
 */
export class Leases {
  readonly #fleet: Fleet
  readonly #profiles: Profiles
  readonly #hooks: Hooks
  /** How long a worker may take to notice a cancellation. */
  readonly #cancelSeenMs: number
  /** Workers with tasks that have not been sent. */
  readonly #dirty = new Set<WorkerHandle>()
  #next = 1

  constructor(fleet: Fleet, profiles: Profiles, cancelSeenMs: number, hooks: Hooks) {
    this.#fleet = fleet
    this.#profiles = profiles
    this.#cancelSeenMs = cancelSeenMs
    this.#hooks = hooks
  }

  // ---- leases begin

  give(worker: WorkerHandle, entry: TaskEntry, group = 0): void {
    entry.worker = worker.name
    entry.records = undefined
    entry.waitedMs = 0
    entry.lease = this.#begin(worker, entry, group)
  }

  /** Gives the task to a second worker as well. Its records are kept apart until its lease is the one that counts. */
  lend(worker: WorkerHandle, entry: TaskEntry): void {
    entry.twin = this.#begin(worker, entry, 0)
    worker.flush()
  }

  /** Sends the tasks that were given out. */
  flush(): void {
    for (const worker of this.#dirty) worker.flush()
    this.#dirty.clear()
  }

  // ---- leases wait

  /** The task released its slot while a request is open. It may do so for several requests at once. */
  waits(lease: Lease): void {
    if (lease.waitingCalls++ > 0) return
    lease.awaySince = performance.now()
    this.#load(lease.worker, -1)
  }

  goesOn(lease: Lease): void {
    if (!isLive(lease) || --lease.waitingCalls > 0) return
    lease.awayMs += performance.now() - lease.awaySince
    this.#load(lease.worker, 1)
  }

  // ---- leases end

  /**
   * The outcome has arrived: the task has no lease any more, and its twin, if any, is cancelled. Call `finished` afterwards,
   * once for all outcomes of a message: there may be hundreds.
   */
  finish(lease: Lease): void {
    const { entry } = lease
    this.#end(lease)
    const other = lease === entry.twin ? entry.lease : entry.twin
    if (lease === entry.twin) adopt(entry, lease)
    entry.lease = entry.twin = undefined
    if (other) this.#close(other)
  }

  finished(worker: WorkerHandle): void {
    this.#fleet.refresh(worker)
    worker.endIfEmpty()
  }

  /** The worker returns these without having started them. Returns the leases whose task has no other lease. */
  takeBack(worker: WorkerHandle, ids: readonly number[]): Lease[] {
    const back: Lease[] = []
    for (const id of ids) {
      const lease = worker.leases.get(id)
      if (!lease) continue
      this.#end(lease)
      if (!this.#goesOnElsewhere(lease)) back.push(lease)
    }
    this.#fleet.refresh(worker)
    return back
  }

  /** The worker is gone. Returns its leases whose task has no other lease. */
  lose(worker: WorkerHandle): ReadonlySet<Lease> {
    this.#dirty.delete(worker)
    const lost = new Set<Lease>()
    for (const lease of [...worker.leases.values()]) {
      this.#end(lease)
      worker.lost.set(lease.id, lease)
      if (!this.#goesOnElsewhere(lease)) lost.add(lease)
    }
    return lost
  }

  /** Ends the other lease of the task, if it has two. */
  keepOnly(lease: Lease): void {
    const { entry } = lease
    const { twin } = entry
    if (twin === undefined) return
    const other = lease === twin ? entry.lease! : twin
    if (lease === twin) adopt(entry, lease)
    entry.twin = undefined
    this.#close(other)
  }

  /** The task's outcome is not needed any more: all its leases end. */
  abandon(entry: TaskEntry): void {
    const { lease, twin } = entry
    entry.lease = entry.twin = undefined
    for (const one of [lease, twin]) if (one) this.#close(one)
  }

  /** Tells the worker to cancel the task. Remembers the lease in case an outcome still arrives. */
  #close(lease: Lease): void {
    const { worker, id } = lease
    if (!isLive(lease)) return
    this.#end(lease)
    this.#fleet.refresh(worker)
    worker.lost.set(id, lease)
    worker.cancel(id, 'cancelled', this.#cancelSeenMs)
    worker.endIfEmpty()
  }

  #begin(worker: WorkerHandle, entry: TaskEntry, group: number): Lease {
    const givenAt = entry.run.options.speculate ? performance.now() : 0
    const lease: Lease = {
      id: this.#next++,
      entry,
      worker,
      attempt: entry.attempts + 1,
      started: false,
      startedAt: undefined,
      waitingCalls: 0,
      awaySince: 0,
      awayMs: 0,
      givenAt,
      group,
      records: undefined,
      asks: undefined,
      unavailable: undefined,
    }
    worker.leases.set(lease.id, lease)
    if (worker.load === 0) worker.window.wokeUp(performance.now())
    this.#load(worker, 1)
    worker.add(lease, this.#profiles.get(entry.profile))
    this.#dirty.add(worker)
    return lease
  }

  /** Every lease ends here. The caller refreshes the worker in the fleet, since its load has changed. */
  #end(lease: Lease): void {
    const { worker, id } = lease
    worker.leases.delete(id)
    if (lease.waitingCalls === 0) worker.load--
    if (lease.asks) this.#hooks.over(lease)
  }

  /** This lease has ended without an outcome. True: its task has another. */
  #goesOnElsewhere(lease: Lease): boolean {
    const { entry } = lease
    const { twin } = entry
    entry.twin = undefined
    if (twin === undefined) entry.lease = undefined
    else if (lease !== twin) adopt(entry, twin)
    return twin !== undefined
  }

  #load(worker: WorkerHandle, by: number): void {
    worker.load += by
    this.#fleet.refresh(worker)
  }
}

/** The task is known to run, for `ms` milliseconds by now if the worker said so. */
export function noteStart(lease: Lease, ms?: number): void {
  lease.started = true
  if (ms !== undefined || lease.startedAt === undefined) lease.startedAt = performance.now() - (ms ?? 0)
}

/**
 * How long a task ran that ended with its worker: as the worker `said`, else since the driver knew that it ran. 0: unknown.
 * `said` may be made up by a task.
 */
export function ranMs({ entry, startedAt }: Lease, said?: number): number {
  const now = performance.now()
  if (said !== undefined) return Math.min(said, now - entry.submittedAt)
  return startedAt === undefined ? 0 : now - startedAt
}

/** How long the task was without its slot because it waited for requests. */
export const awayMs = (lease: Lease, now: number): number =>
  lease.awayMs + (lease.waitingCalls > 0 ? now - lease.awaySince : 0)

const isLive = (lease: Lease) => lease.worker.leases.get(lease.id) === lease

/** The twin becomes the task's lease: its records are the ones that count. */
function adopt(entry: TaskEntry, twin: Lease): void {
  entry.records = twin.records
  entry.lease = twin
  entry.worker = twin.worker.name
}
