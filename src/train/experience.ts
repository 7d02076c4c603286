import type { Trajectory } from '../trajectory/trajectory.ts'
import { decisionRewards, decisionsOf, type ReturnsOf } from './decisions.ts'
import type { HeldGroup } from './held-group.ts'
import { returns } from './returns.ts'

/** A rollout to train on. */
export interface Experience {
  readonly trajectory: Trajectory
  /**
   * The grader's reward or, without a grader, the environment's; for a failed rollout, the reward set by the policy for
   * failed rollouts.
   */
  readonly reward: number
  /** True: the rollout failed, and `reward` was set by the policy for failed rollouts. */
  readonly failed: boolean
  /** Relative to its group; fixed when the group was closed. */
  readonly advantage: number
  /** After `computeReturns`: one return per decision; see `decisionsOf`. */
  readonly returns?: Float64Array
}

/** Rollouts that are compared with each other, in the order of `compareRollouts`. */
export interface ExperienceGroup {
  readonly id: string
  readonly run: string | null
  readonly members: readonly Experience[]
}

/** How returns are computed. */
export interface ReturnsRule {
  readonly discount: number
  readonly of: ReturnsOf
}

export function experienceOf(group: HeldGroup, rule: ReturnsRule | undefined): ExperienceGroup {
  const { id, run, rewards, advantages } = group
  const members = group.trajectories().map((trajectory, index): Experience => {
    const reward = rewards[index]!
    const failed = group.failed[index]!
    const more = rule && { returns: returnsOf(trajectory, reward, failed, rule) }
    return { trajectory, reward, failed, advantage: advantages[index]!, ...more }
  })
  return { id, run, members }
}

function returnsOf(
  trajectory: Trajectory,
  reward: number,
  failed: boolean,
  { discount, of }: ReturnsRule,
): Float64Array {
  const decisions = decisionsOf(trajectory)
  // The reward of a failed rollout is that of the whole rollout: what its steps earned before does not count.
  const given = of === 'grade' ? { of, reward } : { of, ...(failed && { total: reward }) }
  return returns(decisionRewards(trajectory, decisions, given), discount)
}
