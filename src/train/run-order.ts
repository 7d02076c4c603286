import { taskOfRollout } from '../grade/outcome.ts'
import type { RunFile } from '../store/run-file.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import { compareRollouts, type RolloutPlace } from './rollout-order.ts'

/**
 * The trajectories of a run in the order of `compareRollouts`, so group by group, read one at a time. Ids are read
 * first, because the order in the file is the order of commits, which depends on timing. `removed` is called for
 * rollouts whose steps were removed.
 */
export async function* trajectoriesInOrder(run: RunFile, removed: () => void): AsyncGenerator<Trajectory> {
  const places: (RolloutPlace & { readonly seq: number })[] = []
  for (const { seq, response } of run.seen()) {
    const { id, groupId, rollout = 1 } = response
    const group = groupId === undefined ? null : { id: groupId }
    places.push({ seq, id, group, task: taskOfRollout(id, rollout), visit: 0, rollout })
  }
  places.sort(compareRollouts)
  for (const { seq } of places) {
    const response = run.seenAt(seq)
    if (response?.removedSteps !== undefined) removed()
    else if (response) yield await response.toTrajectory()
  }
}
