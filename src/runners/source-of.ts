import { runsInDriver } from '../engines/make-engine.ts'
import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { EngineName } from '../run-config.ts'
import type { TaskLike } from '../task.ts'
import { GraphSource, SequenceSource } from './ordered-sources.ts'
import { RolloutSource, rolloutsOf } from './rollouts.ts'
import type { TaskSample } from './sampled-tasks.ts'
import { ArraySource, AsyncIterableSource, checkArray, IterableSource } from './sources.ts'

/** The tasks of a run, as given by the caller. */
export type TasksInput = readonly TaskLike[] | Iterable<TaskLike> | AsyncIterable<TaskLike>

export interface Tasks {
  readonly source: TaskSource
  /** All tasks, if they are known. The source releases them as they are read. */
  readonly all: readonly ReadyTask[] | undefined
  /** Set if these tasks are a sample of more. */
  readonly sample?: TaskSample
}

export interface Order {
  readonly sequenceDependent: boolean
  /** How often each task is run. */
  readonly rollouts?: number | undefined
  readonly engineName?: EngineName
}

export function sourceOf(tasks: TasksInput, order: Order): Tasks {
  const { source, all } = readerOf(tasks, order)
  return { source: order.sequenceDependent ? new SequenceSource(source) : source, all }
}

function readerOf(tasks: TasksInput, { sequenceDependent, rollouts, ...engine }: Order): Tasks {
  const inDriver = runsInDriver(engine)
  if (rollouts !== undefined && sequenceDependent) throw noRollouts('the run is `sequenceDependent`')
  const rolled = (source: TaskSource) => (rollouts === undefined ? source : new RolloutSource(source, rollouts))
  if (Array.isArray(tasks)) {
    const all = checkArray(tasks, inDriver)
    const dependent = all.find(({ task }) => task.dependsOn !== undefined && task.dependsOn.length > 0)
    if (dependent && sequenceDependent)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `task '${dependent.id}' has \`dependsOn\` and the run is \`sequenceDependent\`; use one of them`,
      )
    if (rollouts === undefined) return { source: dependent ? new GraphSource(all) : new ArraySource(all), all }
    if (dependent) throw noRollouts(`task '${dependent.id}' has \`dependsOn\``)
    const each = all.flatMap((item) => rolloutsOf(item, rollouts))
    return { source: new ArraySource(each), all: each }
  }
  if (typeof tasks === 'object' && tasks !== null) {
    if (Symbol.asyncIterator in tasks)
      return { source: rolled(new AsyncIterableSource(tasks, inDriver)), all: undefined }
    if (Symbol.iterator in tasks) return { source: rolled(new IterableSource(tasks, inDriver)), all: undefined }
  }
  throw new ManyworldsError(
    'TASK_INVALID',
    `tasks must be a task, an array, an iterable or an async iterable of tasks; it is ${tasks === null ? 'null' : typeof tasks}`,
  )
}

const noRollouts = (why: string) =>
  new ManyworldsError('CONFIG_INVALID', `\`rollouts\` needs tasks that do not depend on each other, and ${why}`)
