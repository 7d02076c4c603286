import type { ActionStep, Step } from '../trajectory/step.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { type FailedPolicy, judge } from './failed-rollouts.ts'
import { compareRollouts } from './rollout-order.ts'
import { type TokenLine, tokenLines } from './token-lines.ts'

/** What a learner needs of a trajectory. */
export interface Episode {
  readonly task: string
  readonly rollout: number
  readonly group: string
  /** Of the whole: its grade, or what its environment said. */
  readonly reward: number
  readonly actions: readonly (Step & ActionStep)[]
  /** Of a language model: the tokens that it sampled, in place of actions. */
  readonly lines: readonly TokenLine[]
  /** How many actions, or tokens, were chosen. */
  readonly decisions: number
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
  /** Calls of language models that nothing is learned from, and why. */
  readonly refused: readonly string[]
  /** How often the tokens of a reply came back as others, so that a conversation is two for the learner. */
  readonly drifted: number
}

/** Sorts trajectories into groups, and says what those count that have no reward. */
export function episodesOf(trajectories: Iterable<TrajectoryParts>, failed: FailedPolicy): Episodes {
  const groups = new Map<string, Episode[]>()
  const refused: string[] = []
  let [dropped, empty, drifted] = [0, 0, 0]
  for (const trajectory of [...trajectories].sort(compareRollouts)) {
    const { reward } = judge(trajectory, failed)
    const actions = trajectory.steps.filter((step) => step.kind === 'action' && (step.branch ?? 0) === 0)
    const tokens = reward === null || actions.length > 0 ? undefined : tokenLines(trajectory)
    const lines = tokens?.lines ?? []
    if (tokens)
      refused.push(...tokens.refused.map((why) => `task '${trajectory.task}', rollout ${trajectory.rollout}: ${why}`))
    drifted += tokens?.drifted ?? 0
    if (reward === null) dropped++
    else if (actions.length === 0 && lines.length === 0) empty++
    else {
      const { task, rollout, group } = trajectory
      const name = group?.id ?? task
      const isCut = trajectory.ending.kind === 'truncated'
      const { finalObservation } = trajectory
      const episode: Episode = {
        ...{ task, rollout, group: name, reward, isCut, finalObservation, lines },
        actions: actions as (Step & ActionStep)[],
        decisions: actions.length || lines.reduce((sum, { count }) => sum + count, 0),
      }
      const members = groups.get(name)
      if (members) members.push(episode)
      else groups.set(name, [episode])
    }
  }
  return { groups: [...groups.values()], dropped, empty, refused, drifted }
}
