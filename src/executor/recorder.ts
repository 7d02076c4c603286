import type { Packed } from '../protocol/messages.ts'
import type { StepSource, TrajectorySource } from '../response.ts'
import type { TaskResponse, WorkerName } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { AnswerKey, KeptAnswer } from './answers.ts'
import type { AttemptRecords, Lease, TaskEntry } from './task-entry.ts'

/**
 * Records what happens in a run besides its responses, which go to the sink. An entry has the number under which its task is
 * recorded.
 */
export interface RunRecorder {
  /** A worker is ready that was not there when the run began. */
  joined(worker: WorkerName): void
  /** A worker is gone. `lost`: why, if nobody asked it to end. */
  left(worker: WorkerName, lost: string | undefined): void
  /**
   * An attempt has recorded steps, `bytes` in all. `lease.records` has the earlier ones. Calls `stored` when they are stored
   * or no longer need to be: the worker sends at most one window of unstored steps.
   */
  steps(lease: Lease, steps: PackedStep[], bytes: number): void
  /** An attempt has been running for so long. */
  running(lease: Lease, ms: number): void
  /** The steps of an attempt that recorded some, for its response. */
  stepsOf(entry: TaskEntry, records: AttemptRecords): StepSource
  /** Gives what trajectories need in addition to the responses. */
  readonly around: TrajectorySource | undefined
  /** An attempt failed, and the task will be tried again. */
  retried(entry: TaskEntry, response: TaskResponse): void
  /** An outcome arrived after the task was answered, or after its worker was presumed dead. */
  superseded(lease: Lease, response: TaskResponse): void
  /**
   * A task asks for this sub-task. Returns its response if an earlier session has stored one. `instead`: the sub-task of the
   * same id that it replaces.
   */
  subTask(child: TaskEntry, instead: TaskEntry | undefined): TaskResponse | undefined
  /** A task with `rerun: 'never'` is about to start: calls `start` once that is on disk. */
  begin(entry: TaskEntry, start: () => void): void
  subTaskEnded(child: TaskEntry, response: TaskResponse): void
  /** Answers that an earlier session gave to this attempt. Undefined: the request was made, but the answer was lost in a crash. */
  answersOf(entry: TaskEntry, attempt: number): Iterable<readonly [AnswerKey, KeptAnswer | undefined]>
  /** A service is about to make a call that costs money: calls `safe` once this is on disk. */
  called(lease: Lease, service: string, key: AnswerKey, safe: () => void): void
  /** A durable service has answered: calls `safe` once the answer is on disk. */
  answer(lease: Lease, service: string, key: AnswerKey, value: Packed, safe: () => void): void
}
