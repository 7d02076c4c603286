import type { AttemptChunk } from '../../../src/view/api.ts'
import { GrowingColumns } from './growing-columns.ts'

const COLUMNS = ['task', 'worker', 'attempt', 'role', 'state', 'startedAt', 'endedAt'] as const
export type AttemptColumn = (typeof COLUMNS)[number]

/** All attempts of a run, for the timeline. */
export class AttemptTable {
  readonly #numbers = new GrowingColumns<AttemptColumn>(COLUMNS)
  /** Rows of attempts that have not ended, by task and worker. */
  readonly #unfinished = new Map<string, number>()
  firstStart = Infinity
  lastEnd = -Infinity

  get count(): number {
    return this.#numbers.count
  }

  column(name: AttemptColumn): Float64Array {
    return this.#numbers.of(name)
  }

  /** Adds attempts. One that has ended takes the row that it had while it ran. */
  merge(chunk: AttemptChunk): void {
    for (let place = 0; place < chunk.task.length; place++) {
      const key = `${chunk.task[place]} ${chunk.worker[place]}`
      const row = this.#unfinished.get(key) ?? this.#numbers.add()
      for (const name of COLUMNS) this.#numbers.of(name)[row] = chunk[name][place] ?? Number.NaN
      const [startedAt, endedAt] = [chunk.startedAt[place]!, chunk.endedAt[place]!]
      if (endedAt === null) this.#unfinished.set(key, row)
      else this.#unfinished.delete(key)
      this.firstStart = Math.min(this.firstStart, startedAt)
      this.lastEnd = Math.max(this.lastEnd, endedAt ?? startedAt)
    }
  }

  /** Adds those attempts of a chunk that are not in the table with the same end. */
  mergeUnknown(chunk: AttemptChunk): void {
    const tasks = new Set(chunk.task)
    const [task, startedAt, endedAt] = [this.column('task'), this.column('startedAt'), this.column('endedAt')]
    const known = new Set<string>()
    for (let row = 0; row < this.count; row++)
      if (tasks.has(task[row]!)) known.add(`${task[row]} ${startedAt[row]} ${endedAt[row]}`)
    const places = [...chunk.task.keys()].filter(
      (place) => !known.has(`${chunk.task[place]} ${chunk.startedAt[place]} ${chunk.endedAt[place] ?? Number.NaN}`),
    )
    const some = COLUMNS.map((name) => [name, places.map((place) => chunk[name][place])])
    this.merge(Object.fromEntries(some) as AttemptChunk)
  }

  /** The attempts of a task. */
  ofTask(number: number) {
    const [task, attempt, startedAt] = [this.column('task'), this.column('attempt'), this.column('startedAt')]
    const found: { readonly row: number; readonly attempt: number; readonly startedAt: number }[] = []
    for (let row = 0; row < this.count; row++)
      if (task[row] === number) found.push({ row, attempt: attempt[row]!, startedAt: startedAt[row]! })
    return found
  }
}
