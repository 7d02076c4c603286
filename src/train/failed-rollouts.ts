import { ManyworldsError } from '../errors.ts'
import { blameFor } from '../grade/blame.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/**
 * What a rollout counts that failed, and so has no reward:
 * - `'drop'`: nothing; its group is compared without it.
 * - `'zero'`: a reward of 0.
 * - `{ penalize: 0.5 }`: a reward of -0.5.
 *
 * Only what the agent did is counted so. Where its world or its model was not to be had, where it was cancelled, or its grader gave no reward, nobody can
 * tell how good it was, and the rollout is dropped in any case.
 */
export type FailedPolicy = 'drop' | 'zero' | { readonly penalize: number }

/** The reward that a rollout is trained with, or why it is not. */
export type Judgement =
  | { readonly reward: number; readonly failed: boolean }
  | { readonly reward: null; readonly why: 'failed' | 'lost' | 'ungraded' }

/**
 * The reward of a trajectory: what its grader said or, without one, its environment. Null: it failed, was cancelled, or nobody graded it. It is never a
 * zero that nobody gave.
 */
export function rewardOf({ grade, episode, ending }: Pick<Trajectory, 'grade' | 'episode' | 'ending'>): number | null {
  if (grade !== null) return finite(grade.reward)
  if (ending.kind === 'failed' || ending.kind === 'cancelled') return null
  return finite(episode?.reward)
}

/** A sum of rewards may have run over; nothing can be learned from that. */
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

/** Programs without a compiler hear of it here. */
export function checkFailedPolicy(policy: unknown): asserts policy is FailedPolicy {
  if (policy === 'drop' || policy === 'zero') return
  const amount = typeof policy === 'object' && policy !== null ? (policy as { penalize?: unknown }).penalize : undefined
  if (typeof amount === 'number' && Number.isFinite(amount) && amount > 0) return
  throw new ManyworldsError(
    'CONFIG_INVALID',
    "`failed` must be 'drop', 'zero', or { penalize: amount } with an amount above 0, which is taken off: { penalize: 0.5 } counts as a reward of -0.5",
  )
}
