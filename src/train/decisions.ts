import type { Trajectory } from '../trajectory/trajectory.ts'

/** Which rewards returns are made of: the one reward of the trajectory, at its end; or those of its steps, where they came. */
export type ReturnsOf = 'grade' | 'steps'

/** The steps of a trajectory in which its agent decided: its actions or, in conversations, its calls of models. Places in `steps`. */
export function decisionsOf({ steps }: Pick<Trajectory, 'steps'>): number[] {
  const actions = placesOf(steps, (step) => step.kind === 'action')
  return actions.length > 0 ? actions : placesOf(steps, (step) => step.kind === 'model' && step.role === 'agent')
}

function placesOf(steps: Trajectory['steps'], matches: (step: Trajectory['steps'][number]) => boolean): number[] {
  const places: number[] = []
  for (const [place, step] of steps.entries()) if (matches(step)) places.push(place)
  return places
}

/**
 * The rewards of a trajectory, one for each decision. `'grade'`: `reward` for the last one, 0 for those before. `'steps'`: what each step was given, also
 * steps that are none: their reward goes to the last decision before them, or to the first one if there is none before. `extra` is added to the last.
 */
export function decisionRewards(
  { steps }: Pick<Trajectory, 'steps'>,
  decisions: readonly number[],
  given: { readonly of: 'grade'; readonly reward: number } | { readonly of: 'steps'; readonly extra: number },
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
  rewards[last]! += given.extra
  return rewards
}
