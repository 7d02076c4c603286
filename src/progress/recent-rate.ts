/** Time constant of the exponential decay: older tasks hardly count, … */
const MEMORY_MS = 10_000
/** … but at least about this many tasks count; otherwise the rate of long tasks would jump with each of them. */
const MEMORY_TASKS = 30
const MEMORY_MAX_MS = 10 * 60_000
/** A rate is unknown before this much time has passed. */
const KNOWN_AFTER_MS = 1000

/**
 * The recent number of tasks per second: both tasks and time decay exponentially. Tasks are assumed to be spread evenly
 * between two readings, so the result does not depend on how often it is read.
 */
export class RecentRate {
  #now: number
  #pending = 0
  #tasks = 0
  #ms = 0
  #allTasks = 0
  #allMs = 0

  constructor(now: number) {
    this.#now = now
  }

  add(): void {
    this.#pending++
  }

  /** Excludes the time until now, in which no tasks ran. */
  skip(now: number): void {
    this.#now = now
  }

  /** Undefined until there is enough data. */
  perSecond(now: number): number | undefined {
    this.#advance(now)
    return this.#allMs < KNOWN_AFTER_MS || this.#allTasks === 0 ? undefined : (1000 * this.#tasks) / this.#ms
  }

  #advance(now: number): void {
    const ms = now - this.#now
    if (ms <= 0) return
    this.#allTasks += this.#pending
    this.#allMs += ms
    const memory = Math.min(MEMORY_MAX_MS, Math.max(MEMORY_MS, (MEMORY_TASKS * this.#allMs) / this.#allTasks))
    const kept = Math.exp(-ms / memory)
    const weight = memory * (1 - kept)
    this.#tasks = this.#tasks * kept + (this.#pending / ms) * weight
    this.#ms = this.#ms * kept + weight
    this.#pending = 0
    this.#now = now
  }
}
