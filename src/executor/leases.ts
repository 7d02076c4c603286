import type { Entry, Lease } from './entry.ts'
import type { Fleet } from './fleet.ts'
import type { Profiles } from './profiles.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** Gives tasks to workers, each time under a new lease. Only outcomes under a live lease count. */
export class Leases {
  readonly #fleet: Fleet
  readonly #profiles: Profiles
  /** How long a worker may take to notice a cancellation. */
  readonly #cancelSeenMs: number
  /** Workers with tasks that have not been sent. */
  readonly #dirty = new Set<WorkerHandle>()
  #next = 1

  constructor(fleet: Fleet, profiles: Profiles, cancelSeenMs: number) {
    this.#fleet = fleet
    this.#profiles = profiles
    this.#cancelSeenMs = cancelSeenMs
  }

  give(worker: WorkerHandle, entry: Entry, group = 0): void {
    entry.worker = worker.name
    entry.records = undefined
    entry.lease = this.#lease(worker, entry, group)
  }

  /** A second worker for a task: what it records is kept apart until it is the one that counts. */
  lend(worker: WorkerHandle, entry: Entry): void {
    entry.twin = this.#lease(worker, entry, 0)
    worker.flush()
  }

  /** Another worker has answered: this one is to give up. */
  close({ id, worker }: Lease): void {
    const lease = worker.leases.get(id)
    if (!lease) return
    worker.leases.delete(id)
    worker.lost.set(id, lease)
    this.#fleet.changeLoad(worker, lease.waitingCalls === 0 ? -1 : 0)
    worker.cancel(id, 'cancelled', this.#cancelSeenMs)
    worker.endIfEmpty()
  }

  /** Sends what was given out. */
  flush(): void {
    for (const worker of this.#dirty) worker.flush()
    this.#dirty.clear()
  }

  /** A worker is gone. */
  forget(worker: WorkerHandle): void {
    this.#dirty.delete(worker)
  }

  #lease(worker: WorkerHandle, entry: Entry, group: number): Lease {
    const givenAt = entry.run.options.speculate ? performance.now() : 0
    const lease: Lease = {
      id: this.#next++,
      entry,
      worker,
      attempt: entry.attempts + 1,
      started: false,
      waitingCalls: 0,
      givenAt,
      group,
      records: undefined,
    }
    worker.leases.set(lease.id, lease)
    if (worker.load === 0) worker.window.wokeUp(performance.now())
    this.#fleet.changeLoad(worker, 1)
    worker.add(lease, this.#profiles.get(entry.profile))
    this.#dirty.add(worker)
    return lease
  }
}
