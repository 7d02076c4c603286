import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { Grader } from '../grade/grader.ts'
import type { CacheStore } from '../models/driver/cache.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { Step } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'
import { GroupCommit } from './group-commit.ts'
import type { Ending } from './messages.ts'
import type { Keep } from './prune.ts'
import { RecordedSource } from './recorded-source.ts'
import { Recording } from './recording.ts'
import { ReplyStore } from './reply-store.ts'
import { RunHistory } from './run-history.ts'
import { goesOnText } from './settings-changes.ts'
import { StoreFile } from './store-thread.ts'

export interface RecordedRunOptions {
  readonly runId: string
  readonly path: string
  /** The file may hold many runs. */
  readonly shared: boolean
  readonly mode: 'start' | 'resume' | 'auto'
  /** The user chose the id, so another driver may use it too: claim it before anything starts. */
  readonly named: boolean
  readonly durability: 'normal' | 'full'
  readonly keep: Keep | undefined
  readonly retryFailed: boolean
  /** Settings that decide answers may differ from those of earlier sessions. */
  readonly acceptChanges: boolean
  readonly seed: number
  readonly sequenceDependent: boolean
  readonly script: string | undefined
  /** JSON, without the values of environment variables. */
  readonly config: string
  readonly source: TaskSource
  /** All tasks, if they were given as an array. */
  readonly all: readonly ReadyTask[] | undefined
  readonly notice: (line: string) => void
  /** The grader of answers whose task has none. */
  readonly grader: Grader | undefined
  /** Removes secrets from everything that is stored. Undefined: the run has no secrets. */
  readonly redactor: Redactor | undefined
  /** Called after steps were committed. Undefined if there is no `onStep`. */
  readonly onSteps: ((task: string, attempt: number, steps: readonly Step[]) => void) | undefined
  /** Called when the source has ended, with the number of tasks. */
  readonly ended: (tasks: number) => void
  /** Called when the store can no longer be written. */
  readonly failed: (error: Error) => void
}

/** A run with a store: `source` restores finished tasks, `recording` writes what happens. */
export interface RecordedRun {
  readonly source: TaskSource
  readonly recording: Recording
  /** Cached model replies, shared by all runs of the store. */
  readonly cache: CacheStore
  readonly resumed: boolean
  /** What earlier sessions have spent. */
  spent(): Usage
  /** Resolves when everything so far is committed and its callbacks have run. */
  flush(): Promise<void>
  /** Resolves when everything is committed and the run is released. Rejects if writing failed. */
  close(ending: Ending): Promise<void>
}

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

/** Opens or creates the run and compares the given tasks with the recorded ones. If they differ, throws before anything starts. */
export async function openRecordedRun(options: RecordedRunOptions): Promise<RecordedRun> {
  const { runId, path, shared, mode, durability, seed, sequenceDependent, notice, all, redactor } = options
  const header = { runId, seed, sequenceDependent, manyworlds: version, script: options.script ?? null }
  const { file, opened } = await StoreFile.open({ path, shared, header, mode, durability, keep: options.keep })
  const resumed = opened.run !== undefined
  let history: RunHistory | undefined
  let failure: Error | undefined
  let release = () => {}
  const commit = new GroupCommit(file, (error) => {
    failure = error
    release()
    cache.fail(error)
    options.failed(error)
  })
  const cache = new ReplyStore(file, commit)
  try {
    history = opened.run === undefined ? undefined : new RunHistory(path, opened.run, runId, options)
    file.onWaiting = notice
    const changes = history?.checkSettings(options.config) ?? []
    if (changes.length > 0) notice(goesOnText(changes))
    const recording = new Recording(commit, path, opened, history, options)
    release = () => recording.close()
    const ended = (tasks: number) => {
      if (all === undefined) recording.allRead()
      options.ended(tasks)
    }
    const sequence = sequenceDependent
    const source = new RecordedSource(options.source, { runId, recording, commit, history, sequence, all, ended })
    const total = all?.length ?? null
    file.onBegun = (begun) => recording.begun(begun)
    const session = { pid: process.pid, host: hostname(), node: process.version, config: options.config, total }
    await file.begin(session, options.named || !shared)
    commit.begin()
    return {
      source,
      recording,
      cache,
      resumed,
      spent: () => history?.spent() ?? {},
      flush: () => commit.flush(),
      async close(ending) {
        cache.close()
        await commit.flush()
        release()
        history?.close()
        const { how, error } = failure ? { how: 'failed' as const, error: String(failure) } : ending
        await file.end({ how, error: error && redactor ? redactor.text(error) : error })
        if (failure) throw failure
      },
    }
  } catch (error) {
    commit.abandon()
    history?.close()
    await file.end(undefined).catch(() => {})
    throw error
  }
}
