import type { Packed } from '../protocol/messages.ts'
import type { StepSource, TrajectorySource } from '../response.ts'
import type { TaskResponse } from '../task.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import type { AnswerKey, KeptAnswer } from './answers.ts'
import type { AttemptRecords, Entry, Lease } from './entry.ts'

/**
 * Is told what happens in a run besides its responses, which go to the sink. Entries carry the number under which their
 * task is recorded.
 */
export interface RunRecorder {
  /**
   * An attempt has recorded steps, `bytes` in all. `lease.records` has those that came before. The lease's worker is told
   * when these are `stored`, or need no longer be: it sends no more than a window of them.
   */
  steps(lease: Lease, steps: PackedStep[], bytes: number): void
  /** An attempt has been running for so long. */
  running(lease: Lease, ms: number): void
  /** The steps of an attempt that recorded some, for its response. */
  stepsOf(entry: Entry, records: AttemptRecords): StepSource
  /** What is known of tasks besides their responses. */
  readonly around: TrajectorySource | undefined
  /** An attempt failed, and the task will be tried again. */
  retried(entry: Entry, response: TaskResponse): void
  /** An outcome came after another had been given, or after its worker had been given up. */
  superseded(lease: Lease, response: TaskResponse): void
  /**
   * A task asks for this sub-task. Answers what it came to if that is known from an earlier session. `instead`: the
   * sub-task of the same id that it takes the place of.
   */
  subTask(child: Entry, instead: Entry | undefined): TaskResponse | undefined
  /** A task that must never be started twice is about to be: calls `start` when that is on disk. */
  begin(entry: Entry, start: () => void): void
  subTaskEnded(child: Entry, response: TaskResponse): void
  /** Answers that an earlier session has given to this attempt of the task. Undefined: it asked, and died before the answer. */
  answersOf(entry: Entry, attempt: number): Iterable<readonly [AnswerKey, KeptAnswer | undefined]>
  /** A service is asked something that costs. Nobody waits for this to be on disk. */
  called(lease: Lease, service: string, key: AnswerKey): void
  /** A service has answered, and that counts: calls `safe` when it is on disk. */
  answer(lease: Lease, service: string, key: AnswerKey, value: Packed, safe: () => void): void
}
