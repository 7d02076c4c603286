import type { TaskStatus } from '../task.ts'
import type { Usage } from '../trajectory/usage.ts'

/** How far a run has come. */
export interface RunProgress {
  readonly runId: string
  /** Undefined while the source of the tasks has not ended. */
  readonly total: number | undefined
  /** There if the tasks are a sample: of how many. */
  readonly sampledFrom?: number
  readonly done: number
  /** Tasks that are with a worker now. */
  readonly running: number
  /** Those that are done, by status. */
  readonly counts: Readonly<Record<TaskStatus, number>>
  /** How many of those that are done come from the run file: nothing ran for them in this session. */
  readonly restored: number
  readonly retries: number
  /** Since the run, or this session of it, started. */
  readonly elapsedMs: number
  /** Tasks that finish per second, lately; undefined until it can be known. */
  readonly perSecond: number | undefined
  /** How long it will still take; undefined until it can be known. */
  readonly etaMs: number | undefined
  /** How long tasks ran, restored ones not counted, percentiles within 1 %; undefined if none ran. */
  readonly runMs: { readonly p50: number; readonly p90: number; readonly p99: number; readonly max: number } | undefined
  /** The most frequent first. */
  readonly failures: readonly FailureGroup[]
  readonly slowest: readonly SlowTask[]
  /** Sum of what all tasks reported; empty if none did. */
  readonly usage: Usage
  /** How long tasks that are done waited, in all, while their clocks stood: for permits of models, above all. */
  readonly waitedMs: number
  /** Models for which calls wait now; the longest queue first. */
  readonly waiting: readonly ModelQueue[]
  /** The models that were called, and how often. Not of a run that is looked at later. */
  readonly models: readonly ModelUse[]
}

/** Calls that wait for their turn with a model. */
export interface ModelQueue {
  readonly model: string
  readonly queued: number
  /** How many calls the limiter lets through. */
  readonly perSecond: number
  /** Calls that failed, if none was answered yet: the server is not there, perhaps. */
  readonly failed?: number
}

/** What a run has asked of a model, in this session. */
export interface ModelUse {
  readonly model: string
  /** That were answered. */
  readonly calls: number
  /** Of those, in and out together, as far as the server said. */
  readonly tokens: number
  /** Answers of 429 and the like: the call was made again. */
  readonly rateLimited: number
  /** Other calls that came to nothing. */
  readonly failed: number
}

/** Tasks that did not succeed for the same reason, and the first of them. */
export interface FailureGroup {
  readonly code: string
  readonly count: number
  readonly example: { readonly id: string; readonly message: string }
}

/** A task that took long. */
export interface SlowTask {
  readonly id: string
  readonly status: TaskStatus
  readonly runMs: number
}
