import type { TaskResponse } from '../task.ts'
import type { Entry } from './entry.ts'

/**
 * Is told what happens in a run besides its responses, which go to the sink. Entries carry the number under which their
 * task is recorded.
 */
export interface RunRecorder {
  /** An attempt failed, and the task will be tried again. */
  retried(entry: Entry, response: TaskResponse): void
  /** An outcome came after another had been given, or after its worker had been given up. */
  superseded(entry: Entry, response: TaskResponse): void
  /**
   * A task asks for this sub-task. Answers what it came to if that is known from an earlier session. `instead`: the
   * sub-task of the same id that it takes the place of.
   */
  subTask(child: Entry, instead: Entry | undefined): TaskResponse | undefined
  /** A task that must never be started twice is about to be: calls `start` when that is on disk. */
  begin(entry: Entry, start: () => void): void
  subTaskEnded(child: Entry, response: TaskResponse): void
}
