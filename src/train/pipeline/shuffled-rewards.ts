import { randomFrom } from '../../random.ts'
import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import { rewardOf } from '../failed-rollouts.ts'
import { shuffled } from './sampler.ts'

/** The same trajectories with their rewards permuted at random. `success` is unchanged. */
export function shuffledRewards(batch: readonly TrajectoryParts[], seed: number, update: number): TrajectoryParts[] {
  const random = randomFrom({ seed, purpose: 'shuffle', stream: '', task: '', visit: update, rollout: 1 })
  const rewards = shuffled(
    batch.map(rewardOf).filter((reward) => reward !== null),
    random,
  )
  let next = 0
  return batch.map((trajectory) => {
    if (rewardOf(trajectory) === null) return trajectory
    const reward = rewards[next++]!
    const { grade, episode } = trajectory
    return grade ? { ...trajectory, grade: { ...grade, reward } } : { ...trajectory, episode: { ...episode!, reward } }
  })
}
