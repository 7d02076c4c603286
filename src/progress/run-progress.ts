import type { TaskStatus } from '../task.ts'
import type { Usage } from '../trajectory/usage.ts'

/** The progress of a run. */
export interface RunProgress {
  readonly runId: string
  /** Undefined while the source of the tasks has not ended. */
  readonly total: number | undefined
  /** Set if the tasks are a sample: the number of all tasks. */
  readonly sampledFrom?: number
  /** Tasks that have ended. Cancelled tasks are not done, because a resumed run runs them; those whose dependency failed are. */
  readonly done: number
  /** Tasks that are with a worker now, or whose answers wait for their grade. */
  readonly running: number
  /** Tasks that ran, by status. */
  readonly counts: Readonly<Record<TaskStatus, number>>
  /** How many finished tasks were restored from the run file. They did not run in this session. */
  readonly restored: number
  readonly retries: number
  /** Time since this session of the run started. */
  readonly elapsedMs: number
  /** The recent number of finished tasks per second; undefined until there is enough data. */
  readonly perSecond: number | undefined
  /** The estimated remaining time; undefined until there is enough data, and while the run is being stopped. */
  readonly etaMs: number | undefined
  /** The run time of tasks, without restored ones; percentiles are within 1 %. Undefined if no task ran. */
  readonly runMs: { readonly p50: number; readonly p90: number; readonly p99: number; readonly max: number } | undefined
  /** The most frequent first. */
  readonly failures: readonly FailureGroup[]
  readonly slowest: readonly SlowTask[]
  /** The sum of the usage that all attempts of tasks and sub-tasks reported, and graders, in all sessions; empty if none did. */
  readonly usage: Usage
  /** The part of `usage` that graders reported. */
  readonly graderUsage: Usage
  /** The total time that finished tasks waited while their timeouts were paused, mainly for model permits. */
  readonly waitedMs: number
  /** Models with waiting calls, the longest queue first. */
  readonly waiting: readonly ModelQueue[]
  /** Usage of the models that were called in this session. Empty for a run that is read from its file. */
  readonly models: readonly ModelUse[]
}

/** The queue of calls to a model. */
export interface ModelQueue {
  readonly model: string
  readonly queued: number
  /** The rate of calls that the limiter allows. */
  readonly perSecond: number
  /** The number of failed calls, if none was answered yet: the server may be down. */
  readonly failed?: number
  /** The same for calls that the server refused because of a rate limit. */
  readonly rateLimited?: number
}

/** The usage of a model in this session of a run. */
export interface ModelUse {
  readonly model: string
  /** Answered calls. */
  readonly calls: number
  /** Input and output tokens of these calls, as far as the server reported them. */
  readonly tokens: number
  /** Calls that the server refused because of a rate limit (HTTP 429 and the like). They were retried. */
  readonly rateLimited: number
  /** Calls that failed for other reasons. */
  readonly failed: number
}

/** Tasks that did not succeed for the same reason, and the first of them. */
export interface FailureGroup {
  readonly code: string
  readonly count: number
  /** The first of them. */
  readonly example: { readonly id: string; readonly message: string }
}

/** A task that took long. */
export interface SlowTask {
  readonly id: string
  readonly status: TaskStatus
  readonly runMs: number
}
