import type { Trajectory } from '../trajectory/trajectory.ts'

/** The fields that determine the order of rollouts. */
export type RolloutPlace = Pick<Trajectory, 'task' | 'visit' | 'rollout' | 'id'> & {
  readonly group: { readonly id: string } | null
}

/**
 * The order of rollouts in every batch and sum: by group, task, visit and rollout. It does not depend on which rollout finished first, nor on the
 * machine's locale.
 *
 * @example
 * for await (const trajectory of executor.distributeTasks(tasks, { rollouts: 8 })) trajectories.push(trajectory)
 * trajectories.sort(compareRollouts)
 */
export function compareRollouts(a: RolloutPlace, b: RolloutPlace): number {
  return (
    compareTexts(a.group?.id ?? a.task, b.group?.id ?? b.task) ||
    compareTexts(a.task, b.task) ||
    a.visit - b.visit ||
    a.rollout - b.rollout ||
    compareTexts(a.id, b.id)
  )
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
