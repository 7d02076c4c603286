import type { EpochReport } from './epoch-report.ts'
import type { EvalRow, UpdateRow } from './training-record.ts'

/** What is known of a training when a session of it starts. */
export interface TrainingStart {
  readonly id: string
  /** The store; undefined without one. */
  readonly file: string | undefined
  readonly agent: string
  readonly engineName: string
  /** Undefined: all that the engine has places for. */
  readonly workerNum: number | undefined
  readonly concurrency: number
  readonly tasks: { readonly train: number; readonly validation: number; readonly test: number }
  /** Of earlier sessions. */
  readonly updates: readonly UpdateRow[]
  readonly evaluations: readonly EvalRow[]
  /** The sweep that it is part of. */
  readonly sweep?: string
}

/** How much there is to do. Told when an epoch begins. */
export interface TrainingGoal {
  /** The epoch that begins, or goes on. */
  readonly epoch: number
  /** In all; infinite: nobody has said. */
  readonly epochs: number
  /** Episodes that are still to come, with those of validation and test. */
  readonly left: number
}

/** What a training tells about itself while it goes on; of updates and evaluations, once they are stored. */
export interface TrainingObserver {
  goal(goal: TrainingGoal): void
  /** A run begins: of so many episodes. `what`: such as "update 7". Overlapped, there are several at a time. */
  run(what: string, episodes: number, runId: string): void
  /** An episode of this run is done; or it was in an earlier session, and is restored. */
  episode(runId: string, restored: boolean): void
  update(row: UpdateRow): void
  evaluation(row: EvalRow): void
  epoch(report: EpochReport): void
  /** Something worth a line. */
  notice(line: string): void
  end(ending: { readonly error: Error | undefined; readonly interrupted: boolean }): void
}

/** Is called when a session starts. What it leaves out of the observer is not told. */
export type ObserveTraining = (start: TrainingStart) => Partial<TrainingObserver>
