import type { WorkerSettings } from '../protocol/messages.ts'

const MEMORY_CHECK_MS = 1000

/** Decides when this worker is replaced: after a number of tasks, above a memory limit, or on request. */
export class Recycling {
  readonly #retire: (reason: string) => void
  #finished = 0
  #memoryCheckedAt = 0
  /** It takes no new tasks, and is replaced once it is empty. */
  retiring = false

  constructor(retire: (reason: string) => void) {
    this.#retire = retire
  }

  retire(reason: string): void {
    if (this.retiring) return
    this.retiring = true
    this.#retire(reason)
  }

  taskFinished(): void {
    this.#finished++
  }

  check({ recycleAfterTasks, recycleAboveMb }: WorkerSettings): void {
    if (recycleAfterTasks !== undefined && this.#finished >= recycleAfterTasks)
      this.retire(`${this.#finished} tasks done`)
    if (recycleAboveMb === undefined) return
    const now = performance.now()
    if (now - this.#memoryCheckedAt < MEMORY_CHECK_MS) return
    this.#memoryCheckedAt = now
    const megabytes = process.memoryUsage.rss() / 2 ** 20
    if (megabytes > recycleAboveMb) this.retire(`${Math.round(megabytes)} MB in use`)
  }
}
