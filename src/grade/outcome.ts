import type { Usage } from '../trajectory/usage.ts'
import { type Blame, blameFor, type OutcomeStatus } from './blame.ts'
import type { Grade, TaskGrade } from './grade.ts'
import { ROUNDING } from './mean-interval.ts'

/** The outcome of one rollout: all that evaluation needs. `outcomeOf` converts responses. */
export interface Outcome {
  /** The same for all rollouts of a task, and in runs that are compared. */
  readonly taskId: string
  readonly status: OutcomeStatus
  /** The error code of a response that did not succeed. */
  readonly code?: string
  /** Left out: not graded, so the response's own success counts. */
  readonly grade?: Grade & Pick<TaskGrade, 'error'>
  /** Overrides the blame that follows from the code. */
  readonly blame?: Blame
  readonly usage?: Usage
  readonly runMs?: number
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** How a rollout counts. */
export type RolloutResult =
  /** It has a result. If it is not graded, it failed before that, or the run has no grader. */
  | { readonly solved: boolean; readonly graded: boolean; readonly reward: number | null; readonly reason?: string }
  /** It has no result. */
  | { readonly solved: null; readonly graded: false; readonly reward: null; readonly reason: string }

const NOT_RUN = 'NOT_RUN'
const NOT_GRADED = 'NOT_GRADED'

export function resultOf({ status, code, grade, blame }: Outcome): RolloutResult {
  // A truncated episode may have been graded all the same: the grade counts.
  const solved = grade && isSolved(grade)
  if (grade && solved !== undefined) return { solved, graded: true, reward: grade.reward }
  if (status === 'success') {
    if (!grade) return { solved: true, graded: false, reward: null }
    return { solved: null, graded: false, reward: null, reason: grade.error?.code ?? NOT_GRADED }
  }
  const reason = code ?? (status === 'not-run' ? NOT_RUN : status)
  if ((blame ?? blameFor(status, code)) === 'agent') return { solved: false, graded: false, reward: null, reason }
  return { solved: null, graded: false, reward: null, reason }
}

/** Returns undefined if it could not be graded. */
function isSolved({ success, reward, error }: NonNullable<Outcome['grade']>): boolean | undefined {
  if (error) return undefined
  return success ?? (reward === null ? undefined : reward >= 1 - ROUNDING)
}

/** A response, or an object with the same fields. */
export interface ResponseLike {
  readonly id: string
  readonly status: OutcomeStatus
  readonly error?: { readonly code: string }
  readonly grade?: Outcome['grade']
  /** The number of the rollout. */
  readonly rollout?: number
  readonly usage?: Usage
  readonly timing?: { readonly runMs: number }
  /** Responses have no metadata; add it for `groupBy`. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

export function outcomeOf(response: ResponseLike): Outcome {
  const { id, rollout, status, error, grade, usage, timing, metadata } = response
  return {
    taskId: taskOfRollout(id, rollout),
    status,
    ...(error && { code: error.code }),
    ...(grade && { grade }),
    ...(usage && { usage }),
    ...(timing && { runMs: timing.runMs }),
    ...(metadata && { metadata }),
  }
}

/** The id of the task of a rollout: the first rollout has the task's own id. Not the group id, which several tasks may share. */
export function taskOfRollout(id: string, rollout: number | null | undefined): string {
  const suffix = `@${rollout}`
  return rollout && rollout > 1 && id.endsWith(suffix) ? id.slice(0, -suffix.length) : id
}
