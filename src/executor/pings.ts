import type { Fleet } from './fleet.ts'
import type { Profiles } from './profiles.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** How often workers with tasks are asked. */
const PING_MS = 2000
/** How long an answer may take, beyond the time for which tasks may block the event loop. */
const PONG_MS = 10_000
/** How long the import or the `setup` of an agent may block the event loop. Neither has a timeout. */
const PREPARE_MS = 30 * 60_000

/** When the user is told of a worker that is silent, and is not ended because a task of it has no timeout. */
const SAY_MS = 60_000

/** A question without an answer. */
interface Open {
  /** Checks since it was asked. Not a time: if the driver itself is blocked, answers wait unread. */
  checks: number
  /** How long its tasks and agents may block its event loop: the most since it was asked. */
  blockedMs: number
}

/**
 * Finds workers that run but do not talk: half a frame was written to their connection, or they cannot decode what the driver
 * sends. Timeouts are kept in the worker, so nothing else would ever end the tasks there. Only faulty or hostile code does this.
 *
 * A task may block the event loop until its timeout; then the watchdog ends the worker. So a question that stays open for longer
 * than all timeouts will not be answered. A task without a timeout may block it for ever: its worker is never ended here.
 */
export class Pings {
  readonly #fleet: Fleet
  readonly #profiles: Profiles
  readonly #open = new WeakMap<WorkerHandle, Open>()
  readonly #notice: (line: string) => void
  readonly #timer: NodeJS.Timeout
  #said = false

  constructor(fleet: Fleet, profiles: Profiles, notice: (line: string) => void) {
    this.#fleet = fleet
    this.#profiles = profiles
    this.#notice = notice
    this.#timer = setInterval(() => this.#check(), PING_MS).unref()
  }

  answered(worker: WorkerHandle): void {
    this.#open.delete(worker)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    for (const worker of this.#fleet.workers) {
      if (worker.leases.size === 0 || worker.isAway) this.#open.delete(worker)
      else this.#ask(worker)
    }
  }

  #ask(worker: WorkerHandle): void {
    const blockedMs = this.#longestBlock(worker)
    const open = this.#open.get(worker)
    if (open === undefined) {
      this.#open.set(worker, { checks: 0, blockedMs })
      return worker.channel.control({ type: 'ping' })
    }
    open.checks++
    open.blockedMs = Math.max(open.blockedMs, blockedMs)
    const silentMs = open.checks * PING_MS
    if (silentMs >= SAY_MS && open.blockedMs === Number.POSITIVE_INFINITY) this.#sayOnce(worker, silentMs)
    if (silentMs <= open.blockedMs + PONG_MS) return
    this.#open.delete(worker)
    const limit = `its tasks may block it for ${open.blockedMs / 1000} s at most`
    this.#fleet.replace(worker, `it has not answered the driver for ${silentMs / 1000} s (${limit})`)
  }

  #sayOnce({ name }: WorkerHandle, silentMs: number): void {
    if (this.#said) return
    this.#said = true
    this.#notice(
      `worker ${name.id} has not answered for ${silentMs / 1000} s: a task blocks its event loop, or has broken it; set \`timeoutMs\` to end such tasks`,
    )
  }

  #longestBlock(worker: WorkerHandle): number {
    let longest = 0
    // Tasks of runs that are over are being cancelled.
    for (const { entry } of worker.leases.values())
      if (!entry.run.over)
        longest = Math.max(longest, this.#profiles.get(entry.profile).timeoutMs ?? Number.POSITIVE_INFINITY)
    return worker.preparing > 0 ? longest + PREPARE_MS : longest
  }
}
