import type { TaskResponse } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { ModelQueue, ModelUse } from './run-progress.ts'

/** What is known about a run when it starts. */
export interface RunStart {
  readonly runId: string
  /** The run file; undefined without one. */
  readonly file: string | undefined
  /** How many tasks there are; undefined while the source has not ended. */
  readonly total: number | undefined
  /** Set if the tasks are a sample: the number of all tasks. */
  readonly sampledFrom?: number | undefined
  readonly engineName: string
  /** Undefined: as many as the engine has capacity for. */
  readonly workerNum: number | undefined
  readonly concurrency: number
  /** True: an earlier session of this run is being continued. */
  readonly resumed: boolean
  /** Tasks that are with a worker now, or whose answers wait for their grade. */
  running(): number
  /** What it has spent, in all sessions. Left out: nothing. */
  usage?(): Usage
  /** Whether it starts no more tasks: the rest is cancelled. */
  stopping?(): boolean
  /** For a run with models: waiting calls and usage per model. */
  readonly models?: RunModelFigures | undefined
}

export interface RunModelFigures {
  readonly waiting: readonly ModelQueue[]
  readonly used: readonly ModelUse[]
}

/** A step that a task has recorded. */
export interface StepEvent {
  readonly taskId: string
  readonly attempt: number
  readonly step: Step
}

/** How a run ended. Without an error and without an interruption, it finished normally. */
export interface RunEnding {
  readonly error: Error | undefined
  readonly interrupted: boolean
  /** Lines that tasks printed and that were not shown. */
  readonly hiddenLines?: number
}

/** Receives the events of a run. Responses are reported after their commit. */
export interface RunObserver {
  response(response: TaskResponse): void
  /** A task that was cancelled before it started, because the run stopped. It is not done; an evaluation counts it as without a result. */
  notRun?(response: TaskResponse): void
  /** A step of an attempt, after its commit. */
  step?(event: StepEvent): void
  /** An attempt failed and the task will be tried again. */
  retry(id: string, code: string, message: string): void
  /** The source has ended, with this total number of tasks. */
  total(tasks: number): void
  /** A message for the user, for example that the run waits for the store or the engine, and why. */
  notice(line: string): void
  end(ending: RunEnding): void
}

export type ObserveRun = (start: RunStart) => RunObserver
