import type { TaskContext } from './context.ts'

/** A task that has run for this long is reported to the driver; tasks are checked this often. */
const LONG_MS = 200
const LOOK_MS = 100

/**
 * Reports tasks that run for a while: users see what is running, and the driver knows who ran if the worker crashes. Most tasks
 * end earlier and cost nothing here.
 */
export class LongTasks {
  readonly #live: ReadonlyMap<number, TaskContext>
  readonly #announce: (tasks: [lease: number, ms: number][]) => void
  #looking = false

  constructor(live: ReadonlyMap<number, TaskContext>, announce: (tasks: [lease: number, ms: number][]) => void) {
    this.#live = live
    this.#announce = announce
  }

  lookSoon(): void {
    if (this.#looking) return
    this.#looking = true
    setTimeout(() => {
      this.#looking = false
      this.#look()
    }, LOOK_MS).unref()
  }

  #look(): void {
    const now = performance.now()
    const tasks: [lease: number, ms: number][] = []
    let more = false
    for (const task of this.#live.values()) {
      if (!task.isUnknown) continue
      const ms = Math.round(now - task.startedAt)
      if (ms < LONG_MS) {
        more = true
        continue
      }
      task.announced = true
      tasks.push([task.lease, ms])
    }
    if (tasks.length > 0) this.#announce(tasks)
    if (more) this.lookSoon()
  }
}
