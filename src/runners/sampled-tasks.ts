import { setImmediate as nextTurn } from 'node:timers/promises'
import { Sampler } from '../data/sampler.ts'
import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import type { RunOverview } from '../store/stored-task.ts'
import { count } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { rolloutsOf } from './rollouts.ts'
import type { RunIdentity } from './run-identity.ts'
import { sourceOf, type Tasks, type TasksInput } from './source-of.ts'
import { ArraySource } from './sources.ts'

/** A sample of the tasks of a run. */
export interface TaskSample {
  readonly limit: number
  readonly seed: number
  /** How many tasks there were to choose from, each rollout counted. */
  readonly of: number
}

/** Tasks that are read between two turns of the event loop. */
const TURN_TASKS = 1000
/** How many tasks an async source may read ahead. */
const AHEAD = 64
/** After this time a line on stderr says what the run is waiting for. */
const SAY_AFTER_MS = 5000

/**
 * The tasks of a run with `limit`: that many of them, chosen by their ids, in their order. All of them have to be read before
 * one can be chosen, so from here on the run knows its tasks as if they were an array. Rollouts are those of the chosen.
 */
export async function sampledTasks(tasks: TasksInput, config: ResolvedConfig): Promise<Tasks> {
  const { limit, sampleSeed: seed = config.seed, sequenceDependent, rollouts, signal } = config
  if (limit === undefined) return sourceOf(tasks, config)
  const { source, all } = sourceOf(tasks, { sequenceDependent, engineName: config.engineName })
  const dependent = all?.find(({ task }) => task.dependsOn !== undefined && task.dependsOn.length > 0)
  if (sequenceDependent || dependent)
    throw invalid(
      `\`limit\` takes a sample, and these tasks need each other: ${dependent ? `task '${dependent.id}' has \`dependsOn\`` : 'the run is `sequenceDependent`'}; leave it out`,
    )
  const sampler = new Sampler<ReadyTask>(limit, seed)
  if (all) for (const item of all) sampler.offer(item.id, item)
  else await readAll(source, sampler, limit, signal)
  const chosen = sampler.chosen().map((item, index) => ({ ...item, index }))
  const each = rollouts === undefined ? chosen : chosen.flatMap((item) => rolloutsOf(item, rollouts))
  const sample = { limit, seed, of: sampler.offered * (rollouts ?? 1) }
  return { source: new ArraySource([...each]), all: each, sample }
}

async function readAll(
  source: TaskSource,
  sampler: Sampler<ReadyTask>,
  limit: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  let wake = () => {}
  const report = () => say(`reading all tasks to choose ${count(limit)} of them; ${count(sampler.offered)} so far`)
  const timer = setTimeout(report, SAY_AFTER_MS)
  const stop = () => wake()
  signal?.addEventListener('abort', stop)
  source.open(
    () => wake(),
    () => AHEAD,
  )
  try {
    for (;;) {
      if (signal?.aborted)
        throw new ManyworldsError('SOURCE_FAILED', 'the run was cancelled while its tasks were read for a sample', {
          cause: signal.reason,
        })
      const item = source.pull()
      if (item === 'end') return
      if (item === 'wait') await new Promise<void>((resolve) => (wake = resolve))
      else sampler.offer(item.id, item)
      if (sampler.offered % TURN_TASKS === 0) await nextTurn()
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
    source.close()
  }
}

/**
 * A run must be resumed with the sample that it began with. Otherwise tasks of an iterable would count as new ones, and a
 * sample of 50 would go on with all of a million.
 */
export async function refuseOtherSample({ runId, place, mode }: RunIdentity, config: ResolvedConfig): Promise<void> {
  if (mode === 'start' || place === undefined) return
  const earlier = await earlierRun(runId, place.path)
  if (earlier === undefined) return
  const { limit, sampleSeed: seed = config.seed } = config
  const [was, is] = [earlier.sample, limit === undefined ? undefined : { limit, seed }]
  if (was?.limit === is?.limit && was?.seed === is?.seed) return
  const words = (sample: { readonly limit: number; readonly seed: number } | undefined) =>
    sample ? `limit ${sample.limit} and sampleSeed ${sample.seed}` : 'no limit'
  throw new ManyworldsError(
    'RESUME_MISMATCH',
    `run '${runId}' (${place.path}) has ${words(was)}, and this call has ${words(is)}; a run is resumed as it was begun. Change it back, or start a run under another runId`,
  )
}

/** Undefined if there is no such run yet, or if it cannot be read, which is reported when it is opened. */
async function earlierRun(runId: string, path: string): Promise<RunOverview | undefined> {
  const { RunFile } = await import('../store/run-file.ts')
  try {
    using file = RunFile.in(path, runId)
    return file?.overview()
  } catch {
    return undefined
  }
}

const invalid = (what: string) => new ManyworldsError('CONFIG_INVALID', `run configuration: ${what}`)
