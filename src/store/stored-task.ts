import type { PlainError } from '../response.ts'
import type { TaskResponse, TaskStatus, WorkerName } from '../task.ts'
import type { Step } from '../trajectory/step.ts'

/** A stored task with all its attempts. */
export interface StoredTask {
  readonly runId: string
  readonly id: string
  readonly parentId?: string
  readonly agentName: string
  readonly input: unknown
  /** groundTruth, metadata, tools and groupId, if the task has them. */
  readonly info?: Readonly<Record<string, unknown>>
  readonly dependsOn?: readonly string[]
  /** `pending`: the task has no response. `running`: an attempt is in progress. */
  readonly status: TaskStatus | 'pending' | 'running'
  /** Undefined while the task has no response. */
  readonly response?: TaskResponse
  /** In the order in which they ended, including the one that is the response. */
  readonly attempts: readonly StoredAttempt[]
  /** Attempts that recorded a step or ran for 200 ms and have not ended: they are in progress or were interrupted. */
  readonly unfinished: readonly UnfinishedAttempt[]
  readonly subTaskIds: readonly string[]
}

export interface UnfinishedAttempt {
  readonly attempt: number
  /** The number of the session, from 1. If it is not the last session, the attempt was interrupted. */
  readonly session: number
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly worker?: WorkerName
  /** The steps so far. */
  readonly trajectory: readonly Step[]
}

export interface StoredAttempt {
  readonly attempt: number
  /** `final`: it is the response. `retried`: the task was tried again. `superseded`: another attempt counts instead. */
  readonly role: 'final' | 'retried' | 'superseded'
  readonly status: TaskStatus
  readonly answer?: unknown
  readonly error?: PlainError
  /** Empty if the steps were removed to save space: `removedSteps` is then their number. */
  readonly trajectory: readonly Step[]
  readonly removedSteps?: number
  readonly logs: readonly string[]
  readonly timing: TaskResponse['timing']
  readonly worker?: WorkerName
  /** Milliseconds since 1970. */
  readonly endedAt: number
}

/** The state of a run. */
export interface RunOverview {
  readonly runId: string
  readonly file: string
  /** `died`: the driver was killed, and the run was not resumed. */
  readonly status: 'running' | 'finished' | 'interrupted' | 'died' | 'failed'
  /** Milliseconds since 1970: start of the first session, end of the last. */
  readonly startedAt: number
  readonly endedAt?: number
  /** The total duration of all sessions, without the pauses between them. */
  readonly elapsedMs: number
  /** Undefined while the source of tasks has not ended. */
  readonly total?: number
  /** Set if the tasks are a sample: at most `limit` of the `of` given tasks, chosen with `seed`. */
  readonly sample?: { readonly limit: number; readonly seed: number; readonly of: number }
  /** Responses by status; sub-tasks are not counted. */
  readonly counts: Readonly<Record<TaskStatus, number>>
  readonly script?: string
  readonly engineName?: string
  /** How often the run was started or resumed. */
  readonly sessions: number
  /** Why the last session failed or was stopped. */
  readonly error?: string
  /** The size of the file. Undefined if the run is in a shared store. */
  readonly bytes?: number
}
