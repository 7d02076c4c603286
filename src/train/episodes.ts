import type { ActionStep, Step } from '../trajectory/step.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { type FailedPolicy, judge } from './failed-rollouts.ts'
import { compareRollouts } from './rollout-order.ts'

/** What a learner needs of a trajectory. */
export interface Episode {
  readonly task: string
  readonly rollout: number
  readonly group: string
  /** Of the whole: its grade, or what its environment said. */
  readonly reward: number
  readonly actions: readonly (Step & ActionStep)[]
  /** It was cut short: what would have followed is worth something. */
  readonly isCut: boolean
  /** What was seen after the last action. */
  readonly finalObservation: unknown
}

export interface Episodes {
  /** By group, groups by their names, and in each by rollout: sums must not depend on who was first. */
  readonly groups: readonly (readonly Episode[])[]
  /** Rollouts without a reward that were left out. */
  readonly dropped: number
  /** Episodes without an action that a policy chose. */
  readonly empty: number
}

/** Sorts trajectories into groups, and says what those count that have no reward. */
export function episodesOf(trajectories: Iterable<TrajectoryParts>, failed: FailedPolicy): Episodes {
  const groups = new Map<string, Episode[]>()
  let [dropped, empty] = [0, 0]
  for (const trajectory of [...trajectories].sort(compareRollouts)) {
    const { reward } = judge(trajectory, failed)
    const actions = trajectory.steps.filter((step) => step.kind === 'action' && (step.branch ?? 0) === 0)
    if (reward === null) dropped++
    else if (actions.length === 0) empty++
    else {
      const { task, rollout, group } = trajectory
      const name = group?.id ?? task
      const isCut = trajectory.ending.kind === 'truncated'
      const { finalObservation } = trajectory
      const episode: Episode = {
        ...{ task, rollout, group: name, reward, isCut, finalObservation },
        actions: actions as (Step & ActionStep)[],
      }
      const members = groups.get(name)
      if (members) members.push(episode)
      else groups.set(name, [episode])
    }
  }
  return { groups: [...groups.values()], dropped, empty }
}
