import type { TaskContext } from './context.ts'

/** How many tasks run at once in this worker. */
export class Slots {
  /** As many as the driver allows. */
  total = 1
  taken = 0

  get isFree(): boolean {
    return this.taken < this.total
  }

  /** Takes a slot for a task that continues. False: none is free. */
  take(task: TaskContext): boolean {
    if (!this.isFree) return false
    this.taken++
    task.holdsSlot = true
    return true
  }

  /** Frees the slot of a task. False: it has none. */
  giveBack(task: TaskContext): boolean {
    if (!task.holdsSlot) return false
    task.holdsSlot = false
    this.taken--
    return true
  }
}
