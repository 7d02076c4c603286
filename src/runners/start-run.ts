import type { Dispatcher } from '../executor/dispatcher.ts'
import type { Run, RunSink } from '../executor/run.ts'
import type { RunConfig } from '../run-config.ts'
import { openRun } from './open-run.ts'
import { acquirePool } from './pools.ts'
import { resolveRunConfig } from './resolve-run-config.ts'
import { runHost } from './run-host.ts'
import { sampledTasks } from './sampled-tasks.ts'
import { sourceOf, type TasksInput } from './source-of.ts'

export interface StartedRun {
  readonly run: Run
  readonly dispatcher: Dispatcher
}

/** Checks everything that can be checked, and only then starts. `host`: the program or training that the run is part of. */
export async function startRun(
  tasks: TasksInput,
  config: RunConfig | undefined,
  sink: RunSink,
  carrySteps = false,
  host = runHost(),
): Promise<StartedRun> {
  const resolved = resolveRunConfig(config, host)
  const source = resolved.limit === undefined ? sourceOf(tasks, resolved) : await sampledTasks(tasks, resolved)
  const { dispatcher, release } = acquirePool(resolved)
  try {
    const run = await openRun(
      dispatcher,
      resolved,
      source,
      {
        ...sink,
        end(error, run) {
          release()
          sink.end(error, run)
        },
      },
      carrySteps,
      host,
    )
    return { run, dispatcher }
  } catch (error) {
    release()
    throw error
  }
}
