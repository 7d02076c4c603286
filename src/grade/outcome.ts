import type { Usage } from '../trajectory/usage.ts'
import type { OutcomeStatus } from './blame.ts'
import type { Judged } from './judgement.ts'

/** The outcome of one rollout: all that evaluation needs. `outcomeOf` converts responses; `judgementOf` says how it counts. */
export interface Outcome extends Judged {
  /** The same for all rollouts of a task, and in runs that are compared. */
  readonly taskId: string
  /** Identifies what the task asks: its input and ground truth. Runs are compared only if it is the same in both. */
  readonly content?: string
  readonly usage?: Usage
  readonly runMs?: number
  /** For an outcome from a run file: the session that made it, from 1. */
  readonly session?: number
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A response, or an object with the same fields. */
export interface ResponseLike {
  readonly id: string
  readonly status: OutcomeStatus
  readonly error?: { readonly code: string }
  readonly grade?: Judged['grade']
  /** The result of an environment. It is the grade if there is no other. */
  readonly episode?: Judged['episode']
  /** The number of the rollout. */
  readonly rollout?: number
  readonly usage?: Usage
  readonly timing?: { readonly runMs: number }
  /** Responses have no metadata; add it for `groupBy`. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

export function outcomeOf(response: ResponseLike): Outcome {
  const { id, rollout, status, error, grade, episode, usage, timing, metadata } = response
  return {
    taskId: taskOfRollout(id, rollout),
    status,
    ...(error && { code: error.code }),
    ...(grade && { grade }),
    ...(episode && { episode: { reward: episode.reward, success: episode.success ?? null } }),
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
