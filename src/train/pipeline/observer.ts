import type { EpochReport } from './epoch-report.ts'
import type { EvalRow, UpdateRow } from './training-record.ts'

/** What is known about a training when a session of it starts. */
export interface TrainingStart {
  readonly id: string
  /** The store; undefined without one. */
  readonly file: string | undefined
  readonly agent: string
  readonly engineName: string
  /** Undefined: as many as the engine has capacity for. */
  readonly workerNum: number | undefined
  readonly concurrency: number
  readonly tasks: { readonly train: number; readonly validation: number; readonly test: number }
  /** From earlier sessions. */
  readonly updates: readonly UpdateRow[]
  readonly evaluations: readonly EvalRow[]
  /** The sweep that the training is part of. */
  readonly sweep?: string
}

/** The remaining work. Reported when an epoch begins. */
export interface TrainingGoal {
  /** The epoch that begins or continues. */
  readonly epoch: number
  /** The total; infinite if there is no limit. */
  readonly epochs: number
  /** Remaining episodes, including those of validation and test. */
  readonly left: number
}

/** Receives the events of a training; updates and evaluations once they are stored. */
export interface TrainingObserver {
  goal(goal: TrainingGoal): void
  /** A run with this many episodes begins. `what`: such as "update 7". With `overlap`, several run at a time. */
  run(what: string, episodes: number, runId: string): void
  /** An episode of this run has finished, or was restored from an earlier session. */
  episode(runId: string, restored: boolean): void
  update(row: UpdateRow): void
  evaluation(row: EvalRow): void
  epoch(report: EpochReport): void
  /** A line for the user. */
  notice(line: string): void
  end(ending: { readonly error: Error | undefined; readonly interrupted: boolean }): void
}

/** Called when a session starts. Omitted methods of the observer are not called. */
export type ObserveTraining = (start: TrainingStart) => Partial<TrainingObserver>
