import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import { rewardOf, solvedOf, trainingReward } from '../failed-rollouts.ts'
import type { TrainReport } from '../rl-trainer.ts'

/** The report of a batch that was not converted to rows. */
export function plainReport(batch: readonly TrajectoryParts[], version: number): TrainReport {
  const rewards = batch.map(rewardOf).filter((reward) => reward !== null)
  const judged = solvedOf(batch).filter((solved) => solved !== null)
  const dropReasons: Record<string, number> = {}
  for (const one of batch) {
    const judgement = trainingReward(one, 'drop')
    if (judgement.reward === null) dropReasons[judgement.why] = (dropReasons[judgement.why] ?? 0) + 1
  }
  return {
    ...{ version, episodes: batch.length, trained: 0, skippedGroups: 0, metrics: {} },
    ...{ reward: mean(rewards), successRate: mean(judged.map(Number)), alarms: [] },
    length: mean(batch.map(({ steps }) => steps.length)),
    ...{ rewarded: rewards.length, judged: judged.length },
    ...{ dropped: batch.length - rewards.length, dropReasons },
    staleness: null,
  }
}

export const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
