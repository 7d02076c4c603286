import type { SharedBlob } from './blobs.ts'
import type { BundleConfig } from './bundle/config.ts'
import type { EngineChoice } from './engines/choice.ts'
import type { RuntimeEngine, RuntimeEngineClass } from './engines/engine.ts'
import type { EngineName as DefinedName } from './engines/names.ts'
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

/** The engines as constants, for callers who prefer a name to a string. */
export const EngineName = {
  LOCAL: 'local',
  NODES: 'nodes',
  RAY: 'ray',
  SPARK: 'spark',
  INLINE: 'inline',
  // Not made from `engines/all.ts`, because workers load this file too. The compiler checks that both agree.
} as const satisfies { [Name in DefinedName as Uppercase<Name>]: Name }
export type EngineName = (typeof EngineName)[keyof typeof EngineName]

/** An engine of your own: its class, a function that makes one, or one that you made. */
export type OwnEngine = RuntimeEngineClass | (() => RuntimeEngine) | RuntimeEngine

/** The default `workerNum` on nodes and clusters: as many workers as there is room for. */
export const ALL_WORKERS = 100_000

/** How to run. Every key has a default; unknown keys are refused. */
export interface RunConfig {
  /**
   * Where the workers are: `'local'` (child processes on this machine, the default), `nodes({ … })`, `ray({ … })`,
   * `spark({ … })`, `inline()`, or an engine of your own. See docs/engines.md.
   */
  readonly engine?: EngineName | EngineChoice | OwnEngine
  /** The engine by its name alone, as AWorld has it. Its options are under the key of the same name. */
  readonly engineName?: EngineName
  /**
   * The most worker processes. A run never starts more workers than it has tasks. Default: one per core; on nodes and
   * clusters, all that they offer.
   */
  readonly workerNum?: number
  /**
   * How many tasks each worker runs at once: many for tasks that wait for a model or a service, 1 to run one
   * task per process at a time. Default: 64.
   */
  readonly concurrency?: number
  /** For `'ray'` and `'spark'`: start a small cluster on this machine for this run. Default: `false`. */
  readonly inLocal?: boolean
  /** For `engineName: 'nodes'`: the addresses of the nodes, the token, TLS. See docs/nodes.md. */
  readonly nodes?: NodesOptions
  /** For `engineName: 'ray'`: the cluster, and what each worker reserves there. See docs/ray.md. */
  readonly ray?: RayOptions
  /** For `engineName: 'spark'`: the cluster, and the address at which its executors reach the driver. See docs/spark.md. */
  readonly spark?: SparkOptions
  /**
   * For engines on other machines: `files` to send along with the agents' modules, and `external` packages that are
   * installed there.
   */
  readonly bundle?: BundleConfig
  /**
   * Runs one task after the other. Each finds the answer of the task before it in `ctx.previous`. The run stops at the
   * first failure. Default: `false`.
   */
  readonly sequenceDependent?: boolean
  /** Your own engine: its class, a function that makes one, or an instance. The same as `engine`. See docs/writing-an-engine.md. */
  readonly cls?: OwnEngine
  /**
   * Milliseconds that an attempt may run, counted from its start in the worker. A task's own `timeoutMs` overrides it.
   * Default: no limit.
   */
  readonly timeoutMs?: number
  /**
   * How often a failing task is tried. A task's own `maxAttempts` overrides it. Default: 1; 3 after a `RetryableError` or
   * with `retryIf`.
   */
  readonly maxAttempts?: number
  /**
   * Decides whether a task is tried again after an attempt that failed, timed out or crashed. The driver calls it while
   * attempts are left, except after a `RetryableError` or a `FatalError`, which decide themselves. If it throws, the run
   * fails. See docs/when-things-fail.md#errors-that-say-whether-to-try-again.
   */
  readonly retryIf?: (error: TaskError, about: { readonly taskId: string; readonly attempt: number }) => boolean
  /**
   * Milliseconds to wait before the second attempt. The wait doubles with each further attempt, less a random part of up to
   * half. Default: 200.
   */
  readonly backoffMs?: number
  /** The longest wait between two attempts, in milliseconds. Default: 30,000. */
  readonly backoffMaxMs?: number
  /**
   * Near the end of a run, starts a second copy of a task that takes much longer than others of its agent, on an idle
   * worker. The first answer counts. Tasks with `rerun: 'never'` or with sub-tasks are never copied. Default: `false`.
   */
  readonly speculate?: boolean
  /** Milliseconds for the whole run, with its grades. Unfinished tasks are then answered `cancelled`. Default: no limit. */
  readonly deadlineMs?: number
  /** Cancels the run when it is aborted. Unfinished tasks are answered `cancelled`. */
  readonly signal?: AbortSignal
  /** The seed of `ctx.random`. Default: 0. */
  readonly seed?: number
  /**
   * Runs every task this many times, as one group: `q7`, `q7@2`, `q7@3`, … See docs/evaluation.md. Default: once, without
   * groups.
   */
  readonly rollouts?: number
  /** The grader of all answers, such as `exactMatch()`. A task's own grader overrides it. Default: the agent's own. */
  readonly grade?: Grader
  /** Milliseconds that a grader may take for one answer. Default: 60,000. */
  readonly gradeTimeoutMs?: number
  /**
   * The budget of the run in US dollars, summed from the costs that steps report. When it is spent, no further task starts,
   * running tasks finish, and a resumed run with a larger budget does the rest. Default: no limit.
   */
  readonly maxCostUsd?: number
  /** The same budget in tokens, input and output together. Default: no limit. */
  readonly maxTokens?: number
  /**
   * Runs only a random sample of this many tasks. All tasks are read first. Not for tasks that depend on each other. See
   * docs/data.md#samples. Default: all tasks.
   */
  readonly limit?: number
  /** The seed of `limit`: the same number selects the same tasks, by their ids. Default: `seed`. */
  readonly sampleSeed?: number
  /**
   * The name of the run, and the first part of every `ctx.idempotencyKey`: letters, digits, `.`, `_`, `-`. Default: a new
   * name from date and time.
   */
  readonly runId?: string
  /**
   * Where the run is stored: a folder whose `store.sqlite` holds all its runs, or a path that ends with `.sqlite` or
   * `.db`, for this run alone. `false` stores nothing, and the run cannot be resumed. See docs/run-file.md. Default:
   * `MANYWORLDS_STORE`, or else `.manyworlds/runs` in the current folder.
   */
  readonly store?: string | false
  /**
   * Removes older runs from the store when this run begins: those begun more than `days` days ago, and all but the newest
   * `runs`. Also removes cached model answers that were not used for `days` days. Default: all runs are kept.
   */
  readonly keep?: { readonly days?: number; readonly runs?: number }
  /**
   * Keeps the answers of models in the store, for all its runs. `true` uses stored answers and stores new ones. `'replay'`
   * never calls a model and fails with CACHE_MISS if an answer is missing. See docs/run-file.md#cached-answers-of-models.
   * Default: `false`.
   */
  readonly cache?: boolean | 'replay'
  /**
   * What a reported response survives: `'normal'` the death of any process, `'full'` also a power cut. Default: `'normal'`.
   */
  readonly durability?: 'normal' | 'full'
  /**
   * Continues a run: tasks that are done do not run again, and their responses have `restored: true`. Give the id of the
   * run; or `'auto'` together with `runId`, which continues the run if it exists and starts it if not. See docs/resume.md.
   */
  readonly resume?: string
  /** With `resume`: also runs the tasks again that failed, timed out or crashed. Default: `false`. */
  readonly retryFailed?: boolean
  /**
   * With `resume`: continues although a model, its sampling, the params of an agent, or the grader is another one than before.
   * Answers that are there stay. `manyworlds show` then has figures for each part. Default: `false`, such a run is refused.
   */
  readonly acceptChanges?: boolean
  /**
   * `true` shows progress on stderr. A function is called instead, about once a second. If it throws or rejects, the run
   * fails with that error. Default: `false`.
   */
  readonly progress?: boolean | ((progress: RunProgress) => void)
  /**
   * Language models by name, for `ctx.generate()`, `ctx.model(name)` and `llmAgent`: the URL, limits and price of each. See
   * docs/models.md.
   */
  readonly models?: ModelsConfig
  /**
   * A JSON file with more models by name. `models` overrides it. `false` reads no file. Default: `models.json` in the
   * current folder, if it exists.
   */
  readonly modelsFile?: string | false
  /**
   * Functions of the driver that tasks call with `ctx.ask`, by name; or `{ answer, durable, atOnce }`. See
   * docs/services.md.
   */
  readonly services?: Readonly<Record<string, ServiceFunction | ServiceDefinition>>
  /**
   * Rate limits by name, shared by all tasks: `{ github: { perMinute: 80 } }`. A task waits for its turn with
   * `ctx.limit('github')`. All runs of this process that name the same limit share it.
   */
  readonly limits?: Readonly<Record<string, RateLimit>>
  /**
   * Bytes that tasks get with `ctx.blob`, by name: weights, an index, a table. Each machine receives them once. Do not
   * change them; a `SharedBlob` can be replaced while tasks run. See docs/blobs.md.
   */
  readonly blobs?: Readonly<Record<string, Uint8Array | SharedBlob>>
  /**
   * Called with every step of every task, once the step is stored (with `store: false`, once it has arrived). If it throws
   * or rejects, the run fails with that error.
   */
  readonly onStep?: (event: StepEvent) => void
  /**
   * Secrets to keep out of the run file, printed lines, errors and steps: strings of at least 8 characters, or regular
   * expressions. Each is replaced by `[redacted]`. See docs/secrets.md.
   */
  readonly redact?: readonly (string | RegExp)[]
  /**
   * Prints what tasks print to stderr, each line after its task's id. `response.logs` has these lines in any case. Default:
   * `false`.
   */
  readonly showLogs?: boolean
  /** Replaces a worker after this many tasks. Default: never. */
  readonly recycleAfterTasks?: number
  /** Replaces a worker that uses more than this many megabytes of memory. Default: never. */
  readonly recycleAboveMb?: number
  /**
   * More environment variables for the workers. Local workers inherit the driver's, except those that look like secrets (`GITHUB_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `DATABASE_URL`);
   * workers on other machines inherit none.
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How long idle workers wait for the next call, in milliseconds. 0 ends them with the run. Default: 60,000. */
  readonly keepWarmMs?: number
}
