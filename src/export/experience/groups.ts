import { judgementOf } from '../../grade/judgement.ts'
import { outcomeOf } from '../../grade/outcome.ts'
import type { RunFile } from '../../store/run-file.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'

/** A rollout, for comparison with the others of its group. */
export interface GroupMember {
  /** The id of the response. */
  readonly id: string
  readonly rollout: number
  /** Null: the rollout failed and was not graded, or its reward is unknown. */
  readonly reward: number | null
}

/** The group of a trajectory. One without a group is a group of its own. */
export const groupOf = ({ id, group }: Pick<Trajectory, 'id' | 'group'>): string => group?.id ?? id

/** The rollouts of a run by group, in order. A failed one has a reward only if it was graded. */
export function groupsOf(run: RunFile): Map<string, GroupMember[]> {
  const groups = new Map<string, GroupMember[]>()
  for (const { response } of run.rows().responses()) {
    const { id, groupId = id, rollout = 1 } = response
    const member = { id, rollout, reward: judgementOf(outcomeOf(response)).reward }
    const members = groups.get(groupId)
    if (members) members.push(member)
    else groups.set(groupId, [member])
  }
  // Sort them: the order of commits may differ from run to run.
  for (const members of groups.values())
    members.sort((one, other) => one.rollout - other.rollout || (one.id < other.id ? -1 : 1))
  return groups
}
