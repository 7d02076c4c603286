import type { TaskLike, TaskResponse } from '../task.ts'
import type { PackedTask } from '../task-checks.ts'

/** A task that may run now. */
export interface ReadyTask {
  readonly index: number
  readonly id: string
  readonly task: TaskLike
  /** The packed input, if it is already packed. */
  readonly packed?: PackedTask
  /** Which rollout of which task. */
  readonly rollout?: { readonly of: string; readonly number: number }
  /** Packed: for `ctx.previous` and `ctx.results`. */
  readonly previous?: unknown
  readonly results?: unknown
  /** The number of the task in the run file, and the attempts that an earlier session has charged it. */
  readonly record?: number
  readonly attempts?: number
  /** Not to be run: its response from an earlier session. */
  readonly restored?: TaskResponse
  readonly restoredBytes?: number
  /** Not to be run: it was started in an earlier session and must not start twice. The error message. */
  readonly crashed?: string
  /** Not to be run: a task it depends on did not succeed. The error message. */
  readonly skip?: string
}

/**
 * Where a run's tasks come from: an array, an iterable, a chain, a graph. The executor pulls when a worker has room, so
 * nothing is read far ahead of what workers can take.
 */
export interface TaskSource {
  /** The next task; 'wait': not now, `wake` will be called; 'end': no more. Throws on a bad task: that ends the run. */
  pull(): ReadyTask | 'wait' | 'end'
  /** Called once, before the first pull. `room` returns how many tasks the workers could hold. */
  open(wake: () => void, room: () => number): void
  /** A task of this source has ended. */
  settled?(index: number, response: TaskResponse): void
  /** Stops reading. Returns the tasks that were submitted but not yet pulled. */
  close(): ReadyTask[]
}
