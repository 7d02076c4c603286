import { thrownAt } from '../call-site.ts'
import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import { automaticId, type TaskLike } from '../task.ts'
import { checkTask, packTask } from '../task-checks.ts'
import { checkAgent } from './check-agent.ts'
import { IdSet } from './id-set.ts'

/** Bytes of packed inputs kept from the check of an array; beyond that a large one is packed again when its turn comes. */
const KEEP_PACKED_BYTES = 64 * 1024 * 1024
const SMALL_BYTES = 16 * 1024

/** An array, checked as a whole before anything starts. */
export function checkArray(tasks: readonly TaskLike[], inDriver = false): ReadyTask[] {
  const ids = new Set<string>()
  const ready: ReadyTask[] = new Array(tasks.length)
  let bytes = 0
  for (let index = 0; index < tasks.length; index++) {
    const task: unknown = tasks[index]
    checkTask(task, index)
    checkAgent(task.agent, inDriver)
    // Automatic ids begin with a character that the user's may not, so only the user's can collide.
    if (task.id !== undefined) {
      if (ids.has(task.id)) throw duplicate(task.id)
      ids.add(task.id)
    }
    const id = task.id ?? automaticId(index)
    const packed = packTask(task, index)
    if (packed.size > SMALL_BYTES) bytes += packed.size
    ready[index] =
      bytes < KEEP_PACKED_BYTES || packed.size <= SMALL_BYTES ? { index, id, task, packed } : { index, id, task }
  }
  return ready
}

export class ArraySource implements TaskSource {
  readonly #ready: ReadyTask[]
  #next = 0

  constructor(ready: ReadyTask[]) {
    this.#ready = ready
  }

  open(): void {}

  pull(): ReadyTask | 'end' {
    const item = this.#ready[this.#next]
    if (item === undefined) return 'end'
    // The caller's array is not changed; our copy releases tasks that have been read.
    this.#ready[this.#next++] = undefined as unknown as ReadyTask
    return item
  }

  close(): ReadyTask[] {
    const rest = this.#ready.slice(this.#next)
    this.#next = this.#ready.length
    return rest
  }
}

/** Makes tasks out of what an iterable yields, one by one. */
class Reader {
  readonly #ids = new IdSet()
  readonly #inDriver: boolean
  #index = 0

  constructor(inDriver: boolean) {
    this.#inDriver = inDriver
  }

  read(task: unknown): ReadyTask {
    const index = this.#index++
    checkTask(task, index)
    checkAgent(task.agent, this.#inDriver)
    if (task.dependsOn !== undefined && task.dependsOn.length > 0)
      throw new ManyworldsError(
        'DEPENDENCY_NEEDS_ARRAY',
        `task '${task.id ?? automaticId(index)}' has \`dependsOn\`: give such tasks as an array, so that the whole graph can be checked before work starts`,
      )
    if (task.id !== undefined && !this.#ids.add(task.id)) throw duplicate(task.id)
    // Packed now: a generator may change and yield the same object again.
    return { index, id: task.id ?? automaticId(index), task, packed: packTask(task, index) }
  }
}

/** Any iterable: read one at a time, when a worker has room. */
export class IterableSource implements TaskSource {
  readonly #iterator: Iterator<unknown>
  readonly #reader: Reader

  constructor(iterable: Iterable<unknown>, inDriver: boolean) {
    this.#reader = new Reader(inDriver)
    this.#iterator = iterable[Symbol.iterator]()
  }

  open(): void {}

  pull(): ReadyTask | 'end' {
    let item: IteratorResult<unknown>
    try {
      item = this.#iterator.next()
    } catch (cause) {
      throw sourceFailed(cause)
    }
    return item.done ? 'end' : this.#reader.read(item.value)
  }

  close(): ReadyTask[] {
    try {
      this.#iterator.return?.()
    } catch {
      // The run is ending; an error in a generator's cleanup does not matter.
    }
    return []
  }
}

/** Any async iterable: read ahead by as many tasks as the workers could take. */
export class AsyncIterableSource implements TaskSource {
  readonly #iterator: AsyncIterator<unknown>
  readonly #reader: Reader
  readonly #buffer: ReadyTask[] = []
  #taken = 0
  #reading = false
  #done = false
  #error: unknown
  #wake = () => {}
  #room = () => 1

  constructor(iterable: AsyncIterable<unknown>, inDriver: boolean) {
    this.#reader = new Reader(inDriver)
    this.#iterator = iterable[Symbol.asyncIterator]()
  }

  open(wake: () => void, room: () => number): void {
    this.#wake = wake
    this.#room = room
    void this.#readAhead()
  }

  pull(): ReadyTask | 'wait' | 'end' {
    const item = this.#buffer[this.#taken]
    if (item !== undefined) {
      this.#buffer[this.#taken++] = undefined as unknown as ReadyTask
      return item
    }
    this.#buffer.length = 0
    this.#taken = 0
    if (this.#error !== undefined) throw this.#error
    if (this.#done) return 'end'
    if (!this.#reading) void this.#readAhead()
    return 'wait'
  }

  close(): ReadyTask[] {
    this.#done = true
    const rest = this.#buffer.splice(0).slice(this.#taken)
    this.#taken = 0
    this.#iterator.return?.().catch(() => {})
    return rest
  }

  async #readAhead(): Promise<void> {
    this.#reading = true
    try {
      while (!this.#done && this.#buffer.length - this.#taken < this.#room()) {
        const item = await this.#next()
        if (this.#done) break
        if (item.done) this.#done = true
        else this.#buffer.push(this.#reader.read(item.value))
        this.#wake()
      }
    } catch (error) {
      this.#done = true
      this.#error = error
      this.#wake()
    }
    this.#reading = false
  }

  async #next(): Promise<IteratorResult<unknown>> {
    try {
      return await this.#iterator.next()
    } catch (cause) {
      throw sourceFailed(cause)
    }
  }
}

const duplicate = (id: string) =>
  new ManyworldsError(
    'TASK_DUPLICATE_ID',
    `two tasks have the id '${id}'; ids must be unique in a run (leave them out, and tasks are numbered)`,
  )

function sourceFailed(cause: unknown): ManyworldsError {
  // The error of one of our data sets already names the file and the line.
  if (ManyworldsError.is(cause) && (cause.code === 'DATA_INVALID' || cause.code === 'DATA_UNREADABLE')) return cause
  return new ManyworldsError(
    'SOURCE_FAILED',
    `the source of tasks failed: ${cause instanceof Error ? cause.message : String(cause)}${thrownAt(cause)}`,
    { cause },
  )
}
