import type { Evaluations } from './evaluations.ts'
import type { TrainingGoal } from './observer.ts'
import type { Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'
import type { EpochTarget, Updates } from './updates.ts'

interface Parts {
  readonly settings: Settings
  readonly sets: TaskSets
  readonly updates: Updates
  readonly evaluations: Evaluations
}

/** The remaining work, starting with this epoch. */
export function trainingGoal(
  { settings, sets, updates, evaluations }: Parts,
  epoch: number,
  { tasksPerEpoch, epochs }: EpochTarget,
): TrainingGoal {
  const { every = 1, rollouts = 0, testRollouts = 0 } = settings.evaluate ?? {}
  // Updates are full, so an epoch may have a few tasks more.
  const tasksPerUpdate = Math.min(settings.tasksPerUpdate, sets.train.length)
  const perEpoch = Math.ceil(tasksPerEpoch / tasksPerUpdate) * tasksPerUpdate
  const tasks = (epochs - epoch + 1) * perEpoch - updates.tasksOf(epoch)
  const untrained = updates.rows.length === 0 ? 1 : 0
  // The last epoch is always evaluated.
  const validations = untrained + Math.ceil(epochs / every) - Math.floor((epoch - 1) / every)
  const left =
    tasks * settings.rollouts +
    (evaluations.canValidate ? validations * sets.validation.length * rollouts : 0) +
    validations * sets['off-task'].length * rollouts +
    (evaluations.canTest ? 2 * sets.test.length * testRollouts : 0)
  return { epoch, epochs, left }
}
