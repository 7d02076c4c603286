import { ManyworldsError } from '../errors.ts'
import { blameFor } from '../grade/blame.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/**
 * What a failed rollout, which has no reward, counts as:
 * - `'drop'`: it is left out; its group is compared without it.
 * - `'zero'`: a reward of 0.
 * - `{ penalize: 0.5 }`: a reward of -0.5.
 *
 * This applies only to failures caused by the agent. If the environment or the model was unavailable, the rollout was cancelled, or the grader gave no
 * reward, the rollout is always dropped, because its quality is unknown.
 */
export type FailedPolicy = 'drop' | 'zero' | { readonly penalize: number }

/** The reward that a rollout is trained with, or the reason why it is not trained on. */
export type Judgement =
  | { readonly reward: number; readonly failed: boolean }
  | { readonly reward: null; readonly why: 'failed' | 'lost' | 'ungraded' }

/**
 * The reward of a trajectory: its grade or, without a grader, the environment's reward. Null if it failed, was
 * cancelled, or was not graded; a missing reward is never reported as 0.
 */
export function rewardOf({ grade, episode, ending }: Pick<Trajectory, 'grade' | 'episode' | 'ending'>): number | null {
  if (grade !== null) return finite(grade.reward)
  if (ending.kind === 'failed' || ending.kind === 'cancelled') return null
  return finite(episode?.reward)
}

/** A sum of rewards may have overflowed. */
const finite = (reward: number | null | undefined): number | null => (Number.isFinite(reward) ? reward! : null)

export function judge(trajectory: Pick<Trajectory, 'grade' | 'episode' | 'ending'>, policy: FailedPolicy): Judgement {
  const reward = rewardOf(trajectory)
  if (reward !== null) return { reward, failed: false }
  const { ending } = trajectory
  if (ending.kind === 'cancelled') return { reward, why: 'lost' }
  if (ending.kind !== 'failed') return { reward, why: 'ungraded' }
  if (blameFor('failed', ending.error.code) !== 'agent') return { reward, why: 'lost' }
  if (policy === 'drop') return { reward, why: 'failed' }
  return { reward: policy === 'zero' ? 0 : -policy.penalize, failed: true }
}

/** Checks at run time, for programs without a type checker. */
export function checkFailedPolicy(policy: unknown): asserts policy is FailedPolicy {
  if (policy === 'drop' || policy === 'zero') return
  const amount = typeof policy === 'object' && policy !== null ? (policy as { penalize?: unknown }).penalize : undefined
  if (typeof amount === 'number' && Number.isFinite(amount) && amount > 0) return
  throw new ManyworldsError(
    'CONFIG_INVALID',
    "`failed` must be 'drop', 'zero', or { penalize: amount } with an amount above 0; { penalize: 0.5 } gives a reward of -0.5",
  )
}
