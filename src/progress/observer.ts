import type { TaskResponse } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { ModelQueue, ModelUse } from './run-progress.ts'

/** What is known of a run when it starts. */
export interface RunStart {
  readonly runId: string
  /** The run file; undefined without one. */
  readonly file: string | undefined
  /** How many tasks there are; undefined while the source has not ended. */
  readonly total: number | undefined
  /** The tasks are a sample of so many. */
  readonly sampledFrom?: number | undefined
  readonly engineName: string
  /** Undefined: all that the engine has places for. */
  readonly workerNum: number | undefined
  readonly concurrency: number
  /** True: an earlier session of this run is being continued. */
  readonly resumed: boolean
  /** Tasks that are with a worker now. */
  running(): number
  /** Of a run with models: for which of them calls wait, and what was asked of them. */
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

/** How a run ended: by itself if there is no error and nobody interrupted it. */
export interface RunEnding {
  readonly error: Error | undefined
  readonly interrupted: boolean
}

/** What a run tells about itself while it goes on. Responses are told after their commit. */
export interface RunObserver {
  response(response: TaskResponse): void
  /** A step of an attempt, after its commit. */
  step?(event: StepEvent): void
  /** An attempt failed and the task will be tried again. */
  retry(id: string, code: string, message: string): void
  /** The source has ended: this many tasks in all. */
  total(tasks: number): void
  /** The store or the engine makes the run wait, and why; or something worth a line. */
  notice(line: string): void
  end(ending: RunEnding): void
}

export type ObserveRun = (start: RunStart) => RunObserver
