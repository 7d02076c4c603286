import { Deque } from '../deque.ts'
import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import { automaticId, type TaskLike } from '../task.ts'
import { checkTask, packTask } from '../task-checks.ts'
import { checkAgent } from './check-agent.ts'

/** Tasks that are handed in one by one. */
export class PushSource implements TaskSource {
  readonly #queue = new Deque<ReadyTask>()
  readonly #ids = new Set<string>()
  readonly #inDriver: boolean
  #index = 0
  #ended = false
  #wake = () => {}

  /** `inDriver`: no worker imports the agents. */
  constructor(inDriver: boolean) {
    this.#inDriver = inDriver
  }

  open(wake: () => void): void {
    this.#wake = wake
  }

  push(task: TaskLike): string {
    const index = this.#index
    checkTask(task, index)
    checkAgent(task.agent, this.#inDriver)
    if (task.dependsOn !== undefined)
      throw new ManyworldsError(
        'DEPENDENCY_NEEDS_ARRAY',
        '`dependsOn` needs all tasks at once: give them to Runners.runTask or Runners.streamTask as an array',
      )
    const id = task.id ?? automaticId(index)
    if (this.#ids.has(id))
      throw new ManyworldsError('TASK_DUPLICATE_ID', `a task with the id '${id}' was submitted before`)
    const packed = packTask(task, index)
    this.#ids.add(id)
    this.#index++
    this.#queue.push({ index, id, task, packed })
    this.#wake()
    return id
  }

  end(): void {
    this.#ended = true
  }

  pull(): ReadyTask | 'wait' | 'end' {
    return this.#queue.shift() ?? (this.#ended ? 'end' : 'wait')
  }

  close(): ReadyTask[] {
    this.#ended = true
    return this.#queue.drain()
  }
}
