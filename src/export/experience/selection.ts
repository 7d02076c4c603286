import { judgementOfTrajectory } from '../../grade/judgement.ts'
import type { RunFile } from '../../store/run-file.ts'
import { bestRollouts } from '../../train/best-rollouts.ts'
import type { Split, Trajectory } from '../../trajectory/trajectory.ts'
import { groupsOf } from './groups.ts'
import { REASONS, type Reason } from './left-out.ts'

/** Which trajectories of a run are exported. */
export interface Selection {
  /** Default: `train`, or `all` if no task of the run has a split. */
  readonly split?: Split | 'all' | undefined
  readonly onlySuccess?: boolean
  readonly minReward?: number | undefined
  /** Only trajectories with the highest reward of their group. */
  readonly best?: boolean
  /** With `best`: at most this many of a group. Default: all with the highest reward. */
  readonly perGroup?: number | undefined
}

/** Returns why a trajectory is left out; undefined if it is exported. */
export type Selector = (trajectory: Trajectory) => Reason | undefined

export function selectorOf(run: RunFile, selection: Selection): Selector {
  const { split, onlySuccess = false, minReward, best = false } = selection
  const wanted = split ?? (hasSplits(run) ? 'train' : 'all')
  const bestIds = best ? bestOf(run, selection) : undefined
  return (trajectory) => {
    if (wanted !== 'all' && trajectory.split !== wanted) return REASONS.otherSplit
    const { reward, solved } = judgementOfTrajectory(trajectory)
    // Checked before `best`: if no reward of a group is high enough, this is the reason to report.
    if (minReward !== undefined && !(reward !== null && reward >= minReward)) return REASONS.lowReward
    if (bestIds && !bestIds.has(trajectory.id)) return REASONS.notBest
    return onlySuccess && solved !== true ? REASONS.notSolved : undefined
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

function hasSplits(run: RunFile): boolean {
  for (const { metadata } of run.rollouts({ metadata: true }))
    if (metadata?.split === 'train' || metadata?.split === 'validation' || metadata?.split === 'test') return true
  return false
}
