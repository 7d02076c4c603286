import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import { rewardOf } from '../failed-rollouts.ts'
import type { TrainReport } from '../rl-trainer.ts'

/** The report of a batch that was not converted to rows. */
export function plainReport(batch: readonly TrajectoryParts[], version: number): TrainReport {
  const rewards = batch.map(rewardOf).filter((reward) => reward !== null)
  const judged = batch.flatMap(solved)
  return {
    ...{ version, episodes: batch.length, trained: 0, skippedGroups: 0, metrics: {} },
    ...{ reward: mean(rewards), successRate: mean(judged), alarms: [] },
    length: mean(batch.map(({ steps }) => steps.length)),
    ...{ rewarded: rewards.length, judged: judged.length },
    dropped: batch.length - rewards.length,
    staleness: null,
  }
}

/** 1 if the episode succeeded, 0 if not; empty if unknown. */
export function solved({ grade, episode }: TrajectoryParts): number[] {
  const success = grade ? grade.success : (episode?.success ?? null)
  return success === null ? [] : [success ? 1 : 0]
}

export const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
