import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import type { Spent } from '../executor/budget.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { Step } from '../trajectory/step.ts'
import { Earlier } from './earlier.ts'
import { GroupCommit } from './group-commit.ts'
import type { Ending } from './messages.ts'
import type { Keep } from './prune.ts'
import { RecordedSource } from './recorded-source.ts'
import { Recording } from './recording.ts'
import { StoreFile } from './store-thread.ts'

export interface RecordedRunOptions {
  readonly runId: string
  readonly path: string
  /** The file is a store of many runs. */
  readonly shared: boolean
  readonly mode: 'start' | 'resume' | 'auto'
  /** Others may know its id: it is claimed before anything is started. */
  readonly named: boolean
  readonly durability: 'normal' | 'full'
  readonly keep: Keep | undefined
  readonly retryFailed: boolean
  readonly seed: number
  readonly sequenceDependent: boolean
  readonly script: string | undefined
  /** JSON; without values of environment variables. */
  readonly config: string
  readonly source: TaskSource
  /** All tasks, where they are known. */
  readonly all: readonly ReadyTask[] | undefined
  readonly notice: (line: string) => void
  /** These steps of a task are on disk. Left out if nobody wants to know. */
  readonly onSteps: ((task: string, attempt: number, steps: readonly Step[]) => void) | undefined
  /** The source has ended; so many tasks there were. */
  readonly ended: (tasks: number) => void
  /** The file cannot be written any more. */
  readonly failed: (error: Error) => void
}

/** A run with a file: its source restores what is done, its recorder and its sink write down what happens. */
export interface RecordedRun {
  readonly source: TaskSource
  readonly recording: Recording
  readonly resumed: boolean
  /** What earlier sessions have spent. */
  spent(): Spent
  /** Resolves when all that was written so far is on disk, and those who waited for it have heard. */
  flush(): Promise<void>
  /** Resolves when all is on disk and the file is free for others; rejects if the last of it could not be written. */
  close(ending: Ending): Promise<void>
}

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

/** Takes the file and compares what is given with what it has; nothing is started if that does not fit. */
export async function openRecordedRun(options: RecordedRunOptions): Promise<RecordedRun> {
  const { runId, path, shared, mode, durability, seed, sequenceDependent, retryFailed, notice, all } = options
  const header = { runId, seed, sequenceDependent, manyworlds: version, script: options.script ?? null }
  const { file, opened } = await StoreFile.open({ path, shared, header, mode, durability, keep: options.keep })
  const resumed = opened.run !== undefined
  let earlier: Earlier | undefined
  let failure: Error | undefined
  let release = () => {}
  const commit = new GroupCommit(file, (error) => {
    failure = error
    release()
    options.failed(error)
  })
  try {
    earlier = opened.run === undefined ? undefined : new Earlier(path, opened.run, runId, retryFailed)
    file.onWaiting = notice
    const recording = new Recording(commit, path, opened, earlier, options)
    release = () => recording.close()
    const ended = (tasks: number) => {
      if (all === undefined) recording.allRead()
      options.ended(tasks)
    }
    const sequence = sequenceDependent
    const source = new RecordedSource(options.source, { runId, recording, commit, earlier, sequence, all, ended })
    const total = all?.length ?? null
    file.onBegun = (begun) => recording.begun(begun)
    const session = { pid: process.pid, host: hostname(), node: process.version, config: options.config, total }
    await file.begin(session, options.named || !shared)
    commit.begin()
    return {
      source,
      recording,
      resumed,
      spent: () => earlier?.spent() ?? { costUsd: 0, tokens: 0 },
      flush: () => commit.flush(),
      async close(ending) {
        await commit.flush()
        release()
        earlier?.close()
        await file.end(failure ? { how: 'failed', error: String(failure) } : ending)
        if (failure) throw failure
      },
    }
  } catch (error) {
    commit.abandon()
    earlier?.close()
    await file.end(undefined).catch(() => {})
    throw error
  }
}
