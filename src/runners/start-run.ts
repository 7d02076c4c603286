import { randomUUID } from 'node:crypto'
import { ManyworldsError } from '../errors.ts'
import type { Dispatcher } from '../executor/dispatcher.ts'
import type { Run, RunSink } from '../executor/run.ts'
import type { TaskSource } from '../executor/source.ts'
import type { RunConfig } from '../run-config.ts'
import { type ResolvedConfig, resolveConfig } from '../run-config-schema.ts'
import type { TaskLike } from '../task.ts'
import { GraphSource, SequenceSource } from './ordered-sources.ts'
import { acquirePool } from './pools.ts'
import { ArraySource, AsyncIterableSource, checkArray, IterableSource } from './sources.ts'

/** Tasks as they may be given: an array, an iterable, an async iterable. */
export type TasksInput = readonly TaskLike[] | Iterable<TaskLike> | AsyncIterable<TaskLike>

export interface StartedRun {
  readonly run: Run
  readonly dispatcher: Dispatcher
}

/** Checks everything that can be checked, and only then starts. */
export async function startRun(tasks: TasksInput, config: RunConfig | undefined, sink: RunSink): Promise<StartedRun> {
  const resolved = resolveConfig(config)
  const source = sourceOf(tasks, resolved.sequenceDependent)
  const { dispatcher, release } = acquirePool(resolved)
  const run = openRun(dispatcher, resolved, source, {
    ...sink,
    end(error) {
      release()
      sink.end(error)
    },
  })
  return { run, dispatcher }
}

export function openRun(dispatcher: Dispatcher, config: ResolvedConfig, source: TaskSource, sink: RunSink): Run {
  const { timeoutMs, maxAttempts, backoffMs, backoffMaxMs, deadlineMs, signal, seed, showLogs } = config
  const runId = config.runId ?? randomUUID()
  return dispatcher.open(
    { runId, seed, timeoutMs, maxAttempts, backoffMs, backoffMaxMs, deadlineMs, signal, showLogs },
    source,
    sink,
  )
}

function sourceOf(tasks: TasksInput, sequenceDependent: boolean): TaskSource {
  const source = readerOf(tasks, sequenceDependent)
  return sequenceDependent ? new SequenceSource(source) : source
}

function readerOf(tasks: TasksInput, sequenceDependent: boolean): TaskSource {
  if (Array.isArray(tasks)) {
    const ready = checkArray(tasks)
    const dependent = ready.find(({ task }) => task.dependsOn !== undefined && task.dependsOn.length > 0)
    if (dependent && sequenceDependent)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `task '${dependent.id}' has \`dependsOn\` and the run is \`sequenceDependent\`; use one of them`,
      )
    return dependent ? new GraphSource(ready) : new ArraySource(ready)
  }
  if (typeof tasks === 'object' && tasks !== null) {
    if (Symbol.asyncIterator in tasks) return new AsyncIterableSource(tasks)
    if (Symbol.iterator in tasks) return new IterableSource(tasks)
  }
  throw new ManyworldsError(
    'TASK_INVALID',
    `tasks must be a task, an array, an iterable or an async iterable of tasks; it is ${tasks === null ? 'null' : typeof tasks}`,
  )
}
