import { ManyworldsError } from '../errors.ts'
import { type Judgement, judgementOfTrajectory } from '../grade/judgement.ts'
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
export type TrainingReward =
  | { readonly reward: number; readonly failed: boolean }
  | { readonly reward: null; readonly why: 'failed' | 'lost' | 'ungraded' }

type Rollout = Pick<Trajectory, 'grade' | 'episode' | 'ending'>

/** The reward of a trajectory by its judgement; a missing reward is never reported as 0. */
export const rewardOf = (trajectory: Rollout): number | null => judgementOfTrajectory(trajectory).reward

export function trainingReward(trajectory: Rollout, policy: FailedPolicy): TrainingReward {
  const { reward, basis } = judgementOfTrajectory(trajectory)
  if (reward !== null) return { reward, failed: false }
  const { kind } = trajectory.ending
  if (basis !== 'failure') return { reward, why: kind === 'failed' || kind === 'cancelled' ? 'lost' : 'ungraded' }
  if (policy === 'drop') return { reward, why: 'failed' }
  return { reward: policy === 'zero' ? 0 : -policy.penalize, failed: true }
}

/**
 * Whether each rollout of a batch is solved; null if unknown. The return of an environment has a scale of its own, and an
 * answer that nothing grades may be wrong: if a batch has one of these and no verdict, nothing is known of its failures either.
 */
export function solvedOf(batch: readonly Rollout[]): (boolean | null)[] {
  const judgements = batch.map(judgementOfTrajectory)
  const isUnjudged = judgements.some(({ basis }) => basis === 'return' || basis === 'trust')
  if (isUnjudged && !judgements.some(isVerdict)) return judgements.map(() => null)
  return judgements.map((one) => (isVerdict(one) || one.basis === 'failure' ? one.solved : null))
}

/** Whether a grader or an environment judged a rollout as solved or not. */
export const isVerdict = ({ basis }: Pick<Judgement, 'basis'>): boolean => basis === 'verdict' || basis === 'grade'

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
