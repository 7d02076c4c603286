import type { Budget } from '../executor/budget.ts'
import type { RunSink } from '../executor/run.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'

/** Hands out tasks of a run only while its budget is likely to be enough for those in flight. */
export class Budgeted {
  readonly #budget: Budget
  readonly #wake: () => void
  /** The next task, which waits until others have ended. */
  #held: ReadyTask | undefined

  constructor(budget: Budget, wake: () => void) {
    this.#budget = budget
    this.#wake = wake
  }

  wrapSource(source: TaskSource): TaskSource {
    return {
      open: (wake, room) => source.open(wake, room),
      pull: () => {
        const item = this.#held ?? source.pull()
        if (typeof item === 'string') return item
        const runs = item.restored === undefined && item.skip === undefined && item.crashed === undefined
        this.#held = runs && !this.#budget.admit(item.index) ? item : undefined
        return this.#held ? 'wait' : item
      },
      settled: (index, response) => source.settled?.(index, response),
      close: () => {
        const held = this.#held ? [this.#held] : []
        this.#held = undefined
        return [...held, ...source.close()]
      },
    }
  }

  /** A sink whose responses have been graded: a task is in flight until its grader has ended too. */
  wrapSink(sink: RunSink): RunSink {
    return {
      ...sink,
      response: (index, response, bytes, entry) => {
        this.#budget.release(index)
        if (this.#held) this.#wake()
        sink.response(index, response, bytes, entry)
      },
    }
  }
}
