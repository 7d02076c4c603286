import type { Trajectory } from '../trajectory/trajectory.ts'
import { decisionRewards, decisionsOf, type ReturnsOf } from './decisions.ts'
import type { HeldGroup } from './held-group.ts'
import { returns } from './returns.ts'

/** A rollout as it is trained. */
export interface Experience {
  readonly trajectory: Trajectory
  /** What its grader gave or, without one, its environment; if it failed, what the policy for such says. */
  readonly reward: number
  /** True: it failed, and `reward` is that of the policy. */
  readonly failed: boolean
  /** Compared with its group, fixed when that was closed. */
  readonly advantage: number
  /** After `computeReturns`: one for each decision; see `decisionsOf`. */
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
  const members = group.trajectories().map((trajectory, place): Experience => {
    const reward = rewards[place]!
    const failed = group.failed[place]!
    const more = rule && { returns: returnsOf(trajectory, reward, failed, rule) }
    return { trajectory, reward, failed, advantage: advantages[place]!, ...more }
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
  // What a failed rollout was given on its way counts; what it is charged comes at its end.
  const given = of === 'grade' ? { of, reward } : { of, extra: failed ? reward : 0 }
  return returns(decisionRewards(trajectory, decisions, given), discount)
}
