import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { TaskResponse } from '../task.ts'

/** Reports how many tasks a source had, when it ends; for observed runs without a file. */
export class CountedSource implements TaskSource {
  readonly #inner: TaskSource
  readonly #ended: (tasks: number) => void
  #read = 0
  #over = false

  constructor(inner: TaskSource, ended: (tasks: number) => void) {
    this.#inner = inner
    this.#ended = ended
  }

  open(wake: () => void, room: () => number): void {
    this.#inner.open(wake, room)
  }

  pull(): ReadyTask | 'wait' | 'end' {
    const item = this.#inner.pull()
    if (typeof item !== 'string') this.#read++
    else if (item === 'end' && !this.#over) {
      this.#over = true
      this.#ended(this.#read)
    }
    return item
  }

  settled(index: number, response: TaskResponse): void {
    this.#inner.settled?.(index, response)
  }

  close(): ReadyTask[] {
    return this.#inner.close()
  }
}
