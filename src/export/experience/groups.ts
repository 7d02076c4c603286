import type { RunFile } from '../../store/run-file.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'

/** A rollout as it is compared with the others of its group. */
export interface GroupMember {
  /** The id of its response. */
  readonly id: string
  readonly rollout: number
  /** Null: it failed, or nobody can tell. */
  readonly reward: number | null
}

/** The group of a trajectory; one that was run once is a group of its own. */
export const groupOf = ({ id, group }: Pick<Trajectory, 'id' | 'group'>): string => group?.id ?? id

/** The rollouts of a run by group, in their order. A failed one has no reward, whatever its environment said before. */
export function groupsOf(run: RunFile): Map<string, GroupMember[]> {
  const groups = new Map<string, GroupMember[]>()
  for (const { response, reward } of run.rows().responses()) {
    const { id, groupId = id, rollout = 1, success } = response
    const member = { id, rollout, reward: success ? reward : null }
    const members = groups.get(groupId)
    if (members) members.push(member)
    else groups.set(groupId, [member])
  }
  // Not in the order of commits, which may differ from run to run.
  for (const members of groups.values())
    members.sort((one, other) => one.rollout - other.rollout || (one.id < other.id ? -1 : 1))
  return groups
}
