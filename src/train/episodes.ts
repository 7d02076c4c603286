import type { ActionStep, Step } from '../trajectory/step.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { decisionRewards, indexesOf } from './decisions.ts'
import { type FailedPolicy, trainingReward } from './failed-rollouts.ts'
import type { DropReasons } from './rl-trainer.ts'
import { compareRollouts } from './rollout-order.ts'
import { type TokenLine, tokenLines } from './token-lines.ts'

/** The parts of a trajectory that a learner needs. */
export interface Episode {
  readonly task: string
  readonly rollout: number
  readonly group: string
  /** The reward of the whole episode: its grade, or the environment's reward. */
  readonly reward: number
  readonly actions: readonly (Step & ActionStep)[]
  /** The rewards of the actions, which sum to `reward`. */
  readonly rewards: Float64Array
  /** For a language model: the tokens it sampled, instead of actions. */
  readonly lines: readonly TokenLine[]
  /** The number of chosen actions or sampled tokens. */
  readonly decisions: number
  /** The episode was truncated, so the state after its last action has a value. */
  readonly isCut: boolean
  /** The observation after the last action. */
  readonly finalObservation: unknown
}

export interface Episodes {
  /**
   * Groups sorted by name, with their members sorted by rollout: sums must not depend on which rollout finished first.
   */
  readonly groups: readonly (readonly Episode[])[]
  /** How many rollouts were left out, by reason. */
  readonly dropReasons: DropReasons
  /** Calls of language models that cannot be trained on, with the reason. */
  readonly refused: readonly string[]
  /** How often a reply came back with different tokens, which splits its conversation in two. */
  readonly drifted: number
}

/** Sorts trajectories into groups, and applies the policy for failed rollouts to those without a reward. */
export function episodesOf(trajectories: Iterable<TrajectoryParts>, failed: FailedPolicy): Episodes {
  const groups = new Map<string, Episode[]>()
  const refused: string[] = []
  const dropReasons: Record<string, number> = {}
  const drop = (why: keyof DropReasons) => {
    dropReasons[why] = (dropReasons[why] ?? 0) + 1
  }
  let drifted = 0
  for (const trajectory of [...trajectories].sort(compareRollouts)) {
    const judgement = trainingReward(trajectory, failed)
    const { reward } = judgement
    const places = indexesOf(trajectory.steps, (step) => step.kind === 'action' && (step.branch ?? 0) === 0)
    const actions = places.map((place) => trajectory.steps[place]!)
    const tokens = reward === null || actions.length > 0 ? undefined : tokenLines(trajectory)
    const lines = tokens?.lines ?? []
    if (tokens)
      refused.push(...tokens.refused.map((why) => `task '${trajectory.task}', rollout ${trajectory.rollout}: ${why}`))
    drifted += tokens?.drifted ?? 0
    if (reward === null) drop(judgement.why)
    else if (actions.length === 0 && lines.length === 0) drop(tokens!.refused.length > 0 ? 'refused' : 'empty')
    else {
      const { task, rollout, group } = trajectory
      const name = group?.id ?? task
      const isCut = trajectory.ending.kind === 'truncated'
      const { finalObservation } = trajectory
      const episode: Episode = {
        ...{ task, rollout, group: name, reward, isCut, finalObservation, lines },
        actions: actions as (Step & ActionStep)[],
        rewards: decisionRewards(trajectory, places, { of: 'steps', total: reward }),
        decisions: actions.length || lines.reduce((sum, { count }) => sum + count, 0),
      }
      const members = groups.get(name)
      if (members) members.push(episode)
      else groups.set(name, [episode])
    }
  }
  return { groups: [...groups.values()], dropReasons, refused, drifted }
}
