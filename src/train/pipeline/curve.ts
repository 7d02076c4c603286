import { hash } from 'node:crypto'
import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import { rewardOf } from '../failed-rollouts.ts'
import type { Member, UpdateReport } from './training-record.ts'

/** Where every curve begins. */
export const NO_CURVE: string = hash('sha256', 'manyworlds.curve.1')

/** Who is in a batch, and a digest of it. `batch` is in the order in which sums are made. */
export function batchOf(batch: readonly TrajectoryParts[]): { members: Member[]; batchSha: string } {
  const members = batch.map(({ task, rollout, digest }): Member => [task, rollout, digest])
  const rewards = batch.map(rewardOf)
  return { members, batchSha: hash('sha256', JSON.stringify([members, rewards])) }
}

export interface CurvePoint {
  readonly number: number
  readonly batchSha: string
  readonly version: number
  /** Of its weights. */
  readonly weights: string | null
  readonly report: Pick<UpdateReport, 'reward' | 'successRate' | 'metrics'>
}

/**
 * The digest of a curve with one more point: of what was collected, what was learned and what the learner said of it. JSON writes
 * numbers so that they can be read back exactly, so two curves with the same digest are the same to the last bit.
 */
export function nextCurve(before: string, { number, batchSha, version, weights, report }: CurvePoint): string {
  const { reward, successRate, metrics } = report
  const sorted = Object.entries(metrics).sort(([a], [b]) => (a < b ? -1 : 1))
  return hash('sha256', JSON.stringify([before, number, batchSha, version, weights, reward, successRate, sorted]))
}
