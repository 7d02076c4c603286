import { hash } from 'node:crypto'
import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import { rewardOf } from '../failed-rollouts.ts'
import type { Member, UpdateReport } from './training-record.ts'

/** The digest of an empty curve. */
export const EMPTY_CURVE: string = hash('sha256', 'manyworlds.curve.1')

/** The members of a batch and its digest. `batch` must be sorted by `compareRollouts`. */
export function batchOf(batch: readonly TrajectoryParts[]): { members: Member[]; batchSha: string } {
  const members = batch.map(({ task, rollout, digest }): Member => [task, rollout, digest])
  const rewards = batch.map(rewardOf)
  return { members, batchSha: hash('sha256', JSON.stringify([members, rewards])) }
}

export interface CurvePoint {
  readonly number: number
  readonly batchSha: string
  readonly version: number
  /** The digest of its weights. */
  readonly weights: string | null
  readonly report: Pick<UpdateReport, 'reward' | 'successRate' | 'metrics'>
}

/**
 * The digest of a curve after one more point: what was collected, what was learned, and the metrics. JSON represents
 * numbers exactly, so two curves with the same digest are identical to the last bit.
 */
export function nextCurve(before: string, { number, batchSha, version, weights, report }: CurvePoint): string {
  const { reward, successRate, metrics } = report
  const sorted = Object.entries(metrics).sort(([a], [b]) => (a < b ? -1 : 1))
  return hash('sha256', JSON.stringify([before, number, batchSha, version, weights, reward, successRate, sorted]))
}
