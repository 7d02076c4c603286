import type { AgentLoading } from './agent-loading.ts'
import type { Fleet } from './fleet.ts'
import type { Intake } from './intake.ts'
import type { Leases } from './leases.ts'
import type { Run } from './run.ts'
import type { SpecialTasks } from './special-tasks.ts'
import type { Stragglers } from './stragglers.ts'

interface Parts {
  readonly fleet: Fleet
  readonly intake: Intake
  readonly leases: Leases
  readonly loading: AgentLoading
  readonly special: SpecialTasks
  readonly stragglers: Stragglers
}

/** Gives tasks to workers with room, the least loaded first, and asks for more workers if there is more to do. */
export class Placing {
  readonly #parts: Parts
  #armed = false
  #stopped = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  stop(): void {
    this.#stopped = true
  }

  /** At the end of this turn. */
  soon(): void {
    if (this.#armed) return
    this.#armed = true
    setImmediate(() => {
      this.#armed = false
      this.now()
    })
  }

  now(): void {
    if (this.#stopped) return
    const { fleet, intake, leases, special, stragglers } = this.#parts
    const { open } = fleet
    special.place()
    let required = false
    for (let worker = open.least(); worker; worker = open.least()) {
      const entry = intake.next()
      if (!entry) break
      if (entry.options.requires === undefined) leases.give(worker, entry)
      else {
        special.require(entry)
        required = true
      }
    }
    // What has left makes room for reading more. Not at once: an endless source must not keep the event loop.
    if (required && special.place() > 0) this.soon()
    if (open.size === 0) this.#feedLeaving()
    leases.flush()
    // Without workers, nothing else would notice that a source has ended.
    if (fleet.workers.size === 0) for (const run of [...intake.runs]) this.peek(run)
    if (open.size === 0 && fleet.openCareful()) this.soon()
    if (open.size === 0 || special.stuck)
      fleet.grow(() => {
        for (const run of intake.runs) this.peek(run)
        return this.backlog()
      })
    else if (intake.runs.length > 0) {
      fleet.recallSoon()
      stragglers.lookSoon()
    }
  }

  /**
   * If all workers are retiring, and their tasks wait for sub-tasks, there would be a deadlock: the sub-tasks need a new
   * worker, which comes only after the waiting tasks have ended. So a retiring worker runs the sub-tasks, one at a time.
   */
  #feedLeaving(): void {
    const { fleet, intake, leases } = this.#parts
    for (const worker of fleet.leaving()) {
      const child = intake.nextSubTask((entry) => worker.hasLabels(entry.options.requires ?? []))
      if (child) leases.give(worker, child)
    }
  }

  /** Tasks that were read and wait for a worker. */
  backlog(): number {
    const { special, loading, intake } = this.#parts
    let backlog = special.waiting + loading.held
    for (const run of intake.runs) backlog += run.urgent.length + run.ready.length
    return backlog
  }

  /** Reads a few tasks, to see how many workers are worth starting and which agents they need. */
  peek(run: Run): void {
    const { fleet, intake } = this.#parts
    while (this.backlog() < fleet.workerNum && run.sourceState === 'open') {
      const entry = intake.read(run)
      if (entry === undefined) return
      intake.enqueue(entry, false)
    }
  }
}
