import type { Trajectory } from '../trajectory/trajectory.ts'

/** Which rewards returns are computed from: the trajectory's one reward, at its end, or the rewards of its steps. */
export type ReturnsOf = 'grade' | 'steps'

/** Indexes of the steps in which the agent made a decision: its actions or, in conversations, its model calls. */
export function decisionsOf({ steps }: Pick<Trajectory, 'steps'>): number[] {
  const actions = indexesOf(steps, (step) => step.kind === 'action')
  return actions.length > 0 ? actions : indexesOf(steps, (step) => step.kind === 'model' && step.role === 'agent')
}

export function indexesOf(
  steps: Trajectory['steps'],
  matches: (step: Trajectory['steps'][number]) => boolean,
): number[] {
  const indexes: number[] = []
  for (const [index, step] of steps.entries()) if (matches(step)) indexes.push(index)
  return indexes
}

/**
 * The rewards of a trajectory, one per decision. `'grade'`: `reward` at the last decision, 0 at the others. `'steps'`:
 * the rewards of the steps; the reward of a step that is not a decision goes to the decision before it, or to the first
 * one if there is none. `total`: the reward of the whole trajectory, such as a grade or a penalty; the difference is
 * added to the last decision.
 */
export function decisionRewards(
  { steps }: Pick<Trajectory, 'steps'>,
  decisions: readonly number[],
  given: { readonly of: 'grade'; readonly reward: number } | { readonly of: 'steps'; readonly total?: number },
): Float64Array {
  const rewards = new Float64Array(decisions.length)
  const last = rewards.length - 1
  if (last < 0) return rewards
  if (given.of === 'grade') {
    rewards[last] = given.reward
    return rewards
  }
  let at = 0
  for (const [place, { reward }] of steps.entries()) {
    while (at < last && decisions[at + 1]! <= place) at++
    if (reward !== undefined) rewards[at]! += reward
  }
  if (given.total === undefined) return rewards
  let sum = 0
  for (const reward of rewards) sum += reward
  rewards[last]! += given.total - sum
  return rewards
}
