import { taskOfRollout } from '../grade/outcome.ts'
import type { RunFile } from '../store/run-file.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import { compareRollouts, type RolloutPlace } from './rollout-order.ts'

/**
 * The trajectories of a run in the order of `compareRollouts`, so one group after the other, read one at a time. Only ids are read before: where each
 * response is in the file says when it was committed, and that depends on who was fast. `removed` is called for those without their steps.
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
