import type { AnyAgent } from '../agent.ts'
import { automaticId, type TaskLike } from '../task.ts'
import { Trajectory, type TrajectoryParts } from '../trajectory/trajectory.ts'

/** A task whose agent may be omitted. */
export type RolloutTask = Omit<TaskLike, 'agent'> & { readonly agent?: AnyAgent }

export type RolloutTasks = Iterable<RolloutTask> | AsyncIterable<RolloutTask>

interface Note {
  readonly split: TrajectoryParts['split']
  readonly groupId: string | undefined
  /** Rollouts that have not finished. */
  left: number
}

/**
 * Facts about a task that its trajectories need, but that the store has too late or, without a store, not at all: the
 * size of its group, and its split, so that test tasks are never trained on. Kept from when a task is read until its
 * last rollout has finished.
 */
export class TaskNotes {
  readonly #notes = new Map<string, Note>()
  readonly #rollouts: number | undefined
  /** The number of tasks per named group; undefined if unknown. */
  readonly #tasksOf: ReadonlyMap<string, number> | undefined

  /** `all`: the tasks, if they are known before the run. */
  constructor(rollouts: number | undefined, all: readonly RolloutTask[] | undefined) {
    this.#rollouts = rollouts
    this.#tasksOf = all && countGroups(all)
  }

  add(task: RolloutTask, index: number): void {
    const split = task.metadata?.split
    this.#notes.set(task.id ?? automaticId(index), {
      split: split === 'train' || split === 'validation' || split === 'test' ? split : null,
      groupId: task.groupId,
      left: this.#rollouts ?? 1,
    })
  }

  /** Adds the facts about the task to its trajectory. */
  complete(trajectory: Trajectory): Trajectory {
    const note = this.#notes.get(trajectory.task)
    if (note === undefined) return trajectory
    if (--note.left <= 0) this.#notes.delete(trajectory.task)
    const group = trajectory.group && { id: trajectory.group.id, size: this.#sizeOf(note) }
    return new Trajectory({ ...trajectory, group, split: trajectory.split ?? note.split })
  }

  #sizeOf({ groupId }: Note): number | null {
    const tasks = groupId === undefined ? 1 : this.#tasksOf?.get(groupId)
    return tasks === undefined ? null : tasks * (this.#rollouts ?? 1)
  }
}

function countGroups(tasks: readonly RolloutTask[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const task of tasks) {
    // `Runners` reports invalid tasks.
    const groupId = task?.groupId
    if (groupId !== undefined) counts.set(groupId, (counts.get(groupId) ?? 0) + 1)
  }
  return counts
}
