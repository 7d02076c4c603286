import type { SharedBlob } from './blobs.ts'
import type { BundleConfig } from './bundle/config.ts'
import type { RuntimeEngine, RuntimeEngineClass } from './engines/engine.ts'
import type { NodesOptions } from './engines/nodes/options.ts'
import type { RayOptions } from './engines/ray/options.ts'
import type { SparkOptions } from './engines/spark/options.ts'
import type { TaskError } from './errors.ts'
import type { Grader } from './grade/grader.ts'
import type { RateLimit } from './limits.ts'
import type { ModelsConfig } from './models/settings.ts'
import type { StepEvent } from './progress/observer.ts'
import type { RunProgress } from './progress/run-progress.ts'
import type { ServiceDefinition, ServiceFunction } from './services.ts'

/** The engines, for those who like a name better than a string. */
export const EngineName = { LOCAL: 'local', NODES: 'nodes', RAY: 'ray', SPARK: 'spark' } as const
export type EngineName = (typeof EngineName)[keyof typeof EngineName]

/** On nodes and clusters, without a number: as many workers as there are places for. */
export const ALL_WORKERS = 100_000

/** How to run. Everything has a default; a key that is not listed here is refused. */
export interface RunConfig {
  /** Where the workers are. Default: `'local'`, child processes on this machine. */
  readonly engineName?: EngineName
  /** Worker processes. Default: the machine's cores; on nodes and clusters, all that they offer. No more are started than there are tasks. */
  readonly workerNum?: number
  /** Tasks at once in each worker: many for tasks that wait for a model or a service, 1 to keep them apart. Default 64. */
  readonly concurrency?: number
  /** For engines on a cluster: start a small one here, for tests. */
  readonly inLocal?: boolean
  /** For `engineName: 'nodes'`: the machines, and how to talk to them. */
  readonly nodes?: NodesOptions
  /** For `engineName: 'ray'`: the cluster, and what each worker takes of it. */
  readonly ray?: RayOptions
  /** For `engineName: 'spark'`: the cluster, and the way back from it. */
  readonly spark?: SparkOptions
  /** For engines on other machines: what is sent there beside the agents' modules. */
  readonly bundle?: BundleConfig
  /** One task after the other, each with the answer of the one before in `ctx.previous`; stops at the first failure. */
  readonly sequenceDependent?: boolean
  /** An engine of your own: its class, a function that makes one, or one that you made. */
  readonly cls?: RuntimeEngineClass | (() => RuntimeEngine) | RuntimeEngine
  /** Milliseconds a task may run, from its start, per attempt. Default: no limit. */
  readonly timeoutMs?: number
  /** How often a task may be tried when it fails. Default 1; 3 if its agent throws a `RetryableError`, or if there is a `retryIf`. */
  readonly maxAttempts?: number
  /**
   * Whether a task is tried again after an attempt that failed, timed out or crashed. Called in this process while attempts are
   * left; not after a `RetryableError` or a `FatalError`, which say so themselves. If it throws, the run fails.
   */
  readonly retryIf?: (error: TaskError, about: { readonly taskId: string; readonly attempt: number }) => boolean
  /** Wait before the second attempt; doubled for each further one, with jitter. Default 200. */
  readonly backoffMs?: number
  /** The longest such wait. Default 30,000. */
  readonly backoffMaxMs?: number
  /**
   * Near the end of a run, starts tasks that take much longer than others of their agent a second time, on idle workers; the
   * first answer counts. Such a task runs twice; one with `rerun: 'never'` or with sub-tasks does not. Default false.
   */
  readonly speculate?: boolean
  /** Milliseconds for the whole run; what is not done by then is answered `cancelled`. Default: no limit. */
  readonly deadlineMs?: number
  /** Cancels the run: what is not done is answered `cancelled`. */
  readonly signal?: AbortSignal
  /** For `ctx.random`. Default 0. */
  readonly seed?: number
  /** Runs every task so many times, as one group: `q7`, `q7@2`, `q7@3`, … Default: once, and no groups. */
  readonly rollouts?: number
  /** How answers are graded, unless a task says so itself: a grader such as `exactMatch()`. Default: as their agent says. */
  readonly grade?: Grader
  /** Milliseconds that a grader may take for one answer. Default 60,000. */
  readonly gradeTimeoutMs?: number
  /**
   * What the run may cost, as its steps report it. Once that is spent nothing new is started, what runs may finish, and the
   * rest is left to be done by a resumed run with more to spend. Default: no limit.
   */
  readonly maxCostUsd?: number
  /** The same for tokens, in and out together. */
  readonly maxTokens?: number
  /** Run only a sample of so many of the tasks, each as likely as any other. All are read first. Not for tasks that need each other. */
  readonly limit?: number
  /** For `limit`: the same number takes the same tasks, by their ids. Default: `seed`. */
  readonly sampleSeed?: number
  /** Names the run: letters, digits, `.`, `_`, `-`. Part of every `ctx.idempotencyKey`. Default: a new one, by date and time. */
  readonly runId?: string
  /**
   * Where the run is kept: a folder, whose `store.sqlite` holds all its runs, or the path of a file for this run alone, which
   * ends with `.sqlite`. `false`: nowhere, and nothing to resume. Default: `.manyworlds/runs/` in the current folder, or what
   * MANYWORLDS_STORE says.
   */
  readonly store?: string | false
  /**
   * Removes older runs of the store when this one begins: those begun more than so many days ago, and all but the newest so
   * many. Also removes cached answers of models that were not used for so many days.
   */
  readonly keep?: { readonly days?: number; readonly runs?: number }
  /**
   * Keeps answers of models in the store, for all its runs: `true` uses those that are there and stores new ones, `'replay'`
   * calls no model, and fails with CACHE_MISS where no answer is there. Default false.
   */
  readonly cache?: boolean | 'replay'
  /** What a response survives once it is reported: `'normal'` the death of any process, `'full'` also a power cut. Default `'normal'`. */
  readonly durability?: 'normal' | 'full'
  /**
   * Continues a run: what is done is not run again, and comes with `restored: true`. The id of a run; or `'auto'`,
   * together with `runId`: if there is such a run, it is continued, else it is started.
   */
  readonly resume?: string
  /** When a run is resumed: tasks that failed, timed out or crashed are tried again too. Default false. */
  readonly retryFailed?: boolean
  /** `true`: shows how far the run is, on stderr. A function is told instead, about once a second. Default false. */
  readonly progress?: boolean | ((progress: RunProgress) => void)
  /**
   * Language models by name, for `ctx.model(name)`, `ctx.generate()` and `llmAgent`: where each is, its limits, its price. See
   * docs/models.md.
   */
  readonly models?: ModelsConfig
  /**
   * A JSON file with further models by name; `models` goes before it. Default: `models.json` in the current folder, if it is there.
   * `false`: none.
   */
  readonly modelsFile?: string | false
  /** What tasks may ask this process for, with `ctx.ask`: by name, a function, or one with options. */
  readonly services?: Readonly<Record<string, ServiceFunction | ServiceDefinition>>
  /**
   * How often tasks may do something, by name: `{ github: { perMinute: 80 } }`. Each waits for its turn with `ctx.limit('github')`.
   * All runs of this process that have the same limit share it.
   */
  readonly limits?: Readonly<Record<string, RateLimit>>
  /**
   * Bytes that tasks get with `ctx.blob`, by name: weights, an index, a table. They are brought to each machine once. They must
   * not change; a `SharedBlob` can be replaced while tasks run.
   */
  readonly blobs?: Readonly<Record<string, Uint8Array | SharedBlob>>
  /** Is told of every step of every task, once it is in the run file (or, without one, once it has arrived). */
  readonly onStep?: (event: StepEvent) => void
  /**
   * Secrets that must not get into the run file, prints, errors and steps: values of at least 8 characters, or regular
   * expressions, which search every text there is. `[redacted]` stands in their place.
   */
  readonly redact?: readonly (string | RegExp)[]
  /** Show what tasks print, each line with its task's id before it. It is in `response.logs` in any case. Default false. */
  readonly showLogs?: boolean
  /** Replace a worker after so many tasks. Default: never. */
  readonly recycleAfterTasks?: number
  /** Replace a worker that uses more megabytes. Default: never. */
  readonly recycleAboveMb?: number
  /** More environment variables for the workers; keys of model providers are only passed this way. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How long idle workers are kept for the next call. 0: end them with the run. Default 60,000. */
  readonly warmMs?: number
}
