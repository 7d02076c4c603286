import { ManyworldsError } from '../errors.ts'
import { groupOf } from '../executor/intake.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import { pack } from '../protocol/pack.ts'
import { packTask } from '../task-checks.ts'

/**
 * The rollouts of a task: the same task several times, as one group. The first has the task's own id, so that a run can be
 * resumed with more rollouts than it was begun with, also one that was begun without any.
 */
export function rolloutsOf(item: ReadyTask, rollouts: number): ReadyTask[] {
  const { id, task } = item
  if (/@\d+$/.test(id)) throw refused(id)
  const packed = item.packed ?? packTask(task, item.index)
  return Array.from({ length: rollouts }, (_, at) => {
    const rollout = { of: id, number: at + 1 }
    const one = { ...item, index: item.index * rollouts + at, id: rolloutId(id, at + 1), rollout }
    const { tools, metadata } = task
    const shown = pack({
      ...(tools && { tools }),
      ...(metadata && { metadata }),
      groupId: groupOf(one),
      rollout,
    })
    return { ...one, packed: { ...packed, shown } }
  })
}

export const rolloutId = (id: string, number: number): string => (number === 1 ? id : `${id}@${number}`)

/** A source whose every task comes several times. */
export class RolloutSource implements TaskSource {
  readonly #inner: TaskSource
  readonly #rollouts: number
  #next: ReadyTask[] = []

  constructor(inner: TaskSource, rollouts: number) {
    this.#inner = inner
    this.#rollouts = rollouts
  }

  open(wake: () => void, room: () => number): void {
    this.#inner.open(wake, () => Math.ceil(room() / this.#rollouts))
  }

  pull(): ReadyTask | 'wait' | 'end' {
    const waiting = this.#next.shift()
    if (waiting) return waiting
    const item = this.#inner.pull()
    if (typeof item === 'string') return item
    this.#next = rolloutsOf(item, this.#rollouts)
    return this.#next.shift()!
  }

  close(): ReadyTask[] {
    const rest = this.#next.splice(0)
    for (const item of this.#inner.close()) rest.push(...rolloutsOf(item, this.#rollouts))
    return rest
  }
}

const refused = (id: string) =>
  new ManyworldsError(
    'TASK_INVALID',
    `task '${id}': in a run with \`rollouts\`, ids that end with @ and a number are those of rollouts; give it another id`,
  )
