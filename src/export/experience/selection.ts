import type { RunFile } from '../../store/run-file.ts'
import { bestRollouts } from '../../train/best-rollouts.ts'
import type { Split, Trajectory } from '../../trajectory/trajectory.ts'
import { groupsOf } from './groups.ts'
import { REASONS, type Reason } from './left-out.ts'

/** Which trajectories of a run are exported. */
export interface Selection {
  /** Default: `train`, or all if no task of the run has a split. */
  readonly split?: Split | 'all' | undefined
  readonly onlySuccess?: boolean
  readonly minReward?: number | undefined
  /** Only those with the highest reward of their group. */
  readonly best?: boolean
  /** With `best`: at most so many of a group. Default: all that are equally good. */
  readonly perGroup?: number | undefined
}

/** The reward of a trajectory: its grader's or, if nobody graded it, its environment's. Null is no zero: nobody can tell. */
export const rewardOf = ({ grade, episode }: Pick<Trajectory, 'grade' | 'episode'>): number | null =>
  grade ? grade.reward : (episode?.reward ?? null)

export const successOf = ({ grade, episode }: Pick<Trajectory, 'grade' | 'episode'>): boolean | null =>
  grade?.success ?? episode?.success ?? null

/** Says why a trajectory is left out; undefined: it is not. */
export type Selector = (trajectory: Trajectory) => Reason | undefined

export function selectorOf(run: RunFile, selection: Selection): Selector {
  const { split, onlySuccess = false, minReward, best = false } = selection
  const wanted = split ?? (hasSplits(run) ? 'train' : 'all')
  const bestIds = best ? bestOf(run, selection) : undefined
  return (trajectory) => {
    if (wanted !== 'all' && trajectory.split !== wanted) return REASONS.otherSplit
    if (bestIds && !bestIds.has(trajectory.id)) return REASONS.notBest
    if (onlySuccess && !isSolved(trajectory)) return REASONS.notSolved
    const reward = rewardOf(trajectory)
    return minReward !== undefined && !(reward !== null && reward >= minReward) ? REASONS.lowReward : undefined
  }
}

function bestOf(run: RunFile, { minReward: atLeast, perGroup: most }: Selection): Set<string> {
  const groups = [...groupsOf(run).values()]
  const chosen = groups.map((members) =>
    bestRollouts(
      members.map(({ reward }) => reward),
      { most, atLeast },
    ).map((place) => members[place]!.id),
  )
  return new Set(chosen.flat())
}

/** If neither a grader nor an environment says so, a task that came to its end is solved. */
function isSolved(trajectory: Trajectory): boolean {
  const { kind } = trajectory.ending
  return successOf(trajectory) ?? (trajectory.grade === null && kind !== 'failed' && kind !== 'cancelled')
}

function hasSplits(run: RunFile): boolean {
  for (const { metadata } of run.rollouts({ metadata: true }))
    if (metadata?.split === 'train' || metadata?.split === 'validation' || metadata?.split === 'test') return true
  return false
}
