import type { WorkerSettings } from '../protocol/messages.ts'

const MEMORY_CHECK_MS = 1000

/** When this worker is to be replaced by a new one: after so many tasks, with so much memory in use, or when it is told to. */
export class Recycling {
  readonly #retire: (reason: string) => void
  #finished = 0
  #memoryCheckedAt = 0
  /** It takes nothing new, and is replaced when it is empty. */
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
