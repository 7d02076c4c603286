import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { TaskLike } from '../task.ts'
import { GraphSource, SequenceSource } from './ordered-sources.ts'
import { ArraySource, AsyncIterableSource, checkArray, IterableSource } from './sources.ts'

/** Tasks as they may be given: an array, an iterable, an async iterable. */
export type TasksInput = readonly TaskLike[] | Iterable<TaskLike> | AsyncIterable<TaskLike>

export interface Tasks {
  readonly source: TaskSource
  /** All of them, where that is known. The source lets go of them as they are read. */
  readonly all: readonly ReadyTask[] | undefined
}

export function sourceOf(tasks: TasksInput, sequenceDependent: boolean): Tasks {
  const { source, all } = readerOf(tasks, sequenceDependent)
  return { source: sequenceDependent ? new SequenceSource(source) : source, all }
}

function readerOf(tasks: TasksInput, sequenceDependent: boolean): Tasks {
  if (Array.isArray(tasks)) {
    const all = checkArray(tasks)
    const dependent = all.find(({ task }) => task.dependsOn !== undefined && task.dependsOn.length > 0)
    if (dependent && sequenceDependent)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `task '${dependent.id}' has \`dependsOn\` and the run is \`sequenceDependent\`; use one of them`,
      )
    return { source: dependent ? new GraphSource(all) : new ArraySource(all), all }
  }
  if (typeof tasks === 'object' && tasks !== null) {
    if (Symbol.asyncIterator in tasks) return { source: new AsyncIterableSource(tasks), all: undefined }
    if (Symbol.iterator in tasks) return { source: new IterableSource(tasks), all: undefined }
  }
  throw new ManyworldsError(
    'TASK_INVALID',
    `tasks must be a task, an array, an iterable or an async iterable of tasks; it is ${tasks === null ? 'null' : typeof tasks}`,
  )
}
