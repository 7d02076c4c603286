import type { Fleet } from './fleet.ts'
import type { Run } from './run.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** How often to look for stragglers while workers are idle. */
const LOOK_MS = 100
/** A straggler has run this many times longer than the average of its agent, */
const TIMES = 2
/** and at least this long: a second start of a shorter task gains nothing. */
const AT_LEAST_MS = 500

interface Hooks {
  runs(): readonly Run[]
  /** Gives the task to a second worker. */
  lend(worker: WorkerHandle, entry: TaskEntry): void
}

/**
 * Near the end of a run with `speculate`, starts tasks that take much longer than others of their agent a second time, on idle
 * workers. The first answer counts. `leases.ts` explains tasks with two leases.
 */
export class Stragglers {
  readonly #fleet: Fleet
  readonly #hooks: Hooks
  #timer: NodeJS.Timeout | undefined

  constructor(fleet: Fleet, hooks: Hooks) {
    this.#fleet = fleet
    this.#hooks = hooks
  }

  /** Some workers are idle. */
  lookSoon(): void {
    if (this.#timer !== undefined || !this.#hooks.runs().some(isNearEnd)) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#look()
      this.lookSoon()
    }, LOOK_MS)
    this.#timer.unref()
  }

  #look(): void {
    const now = performance.now()
    for (const worker of [...this.#fleet.open]) {
      if (worker.load > 0) continue
      const slowest = this.#slowestFor(worker, now)
      if (slowest !== undefined) this.#hooks.lend(worker, slowest.entry)
    }
  }

  #slowestFor(idle: WorkerHandle, now: number): Lease | undefined {
    let slowest: Lease | undefined
    for (const worker of this.#fleet.workers) {
      if (worker === idle || worker.careful) continue
      for (const lease of worker.leases.values())
        if ((slowest === undefined || lease.givenAt < slowest.givenAt) && isStraggler(lease, idle, now)) slowest = lease
    }
    return slowest
  }
}

/** Nothing is left to be started. */
const isNearEnd = (run: Run) =>
  run.options.speculate &&
  run.sourceState === 'ended' &&
  run.stopping === undefined &&
  run.ready.length === 0 &&
  run.urgent.length === 0

function isStraggler(lease: Lease, idle: WorkerHandle, now: number): boolean {
  const { entry } = lease
  if (!isNearEnd(entry.run) || entry.twin !== undefined || entry.cancelling !== undefined) return false
  const { neverRerun, requires = [] } = entry.options
  if (neverRerun || entry.asksOnce || !idle.hasLabels(requires)) return false
  const { meanMs } = entry.agent
  return (
    meanMs > 0 && now - lease.givenAt - (lease.asks?.clock.stoodMs(now) ?? 0) > Math.max(AT_LEAST_MS, TIMES * meanMs)
  )
}
