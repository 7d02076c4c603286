import { bestOf, isBetter } from './evaluation.ts'
import type { Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'
import type { EvalRow, UpdateRow } from './training-record.ts'
import type { EpochTarget } from './updates.ts'

/** The progress of a training, by its stored rows. */
export interface Progress {
  readonly settings: Pick<Settings, 'evaluate' | 'patience'>
  readonly sets: Pick<TaskSets, 'validation' | 'test' | 'off-task'>
  readonly updates: readonly UpdateRow[]
  readonly evaluations: readonly EvalRow[]
}

/** The epoch to run or to finish; undefined if all are done, or the training ran out of patience. */
export function nextEpoch(progress: Progress, { tasksPerEpoch, epochs }: EpochTarget): number | undefined {
  const { settings, sets, updates, evaluations } = progress
  const last = updates.at(-1)?.epoch ?? 0
  const version = currentVersion(updates)
  const isMissing = (of: number, wanted: EvalRow['split']) =>
    !evaluations.some((row) => row.version === of && row.split === wanted)
  if (last > 0) {
    if (tasksOf(updates, last) < tasksPerEpoch) return last
    const isLacking = (split: 'validation' | 'off-task') => sets[split].length > 0 && isMissing(version, split)
    if (isEvaluated(progress, last, epochs) && (isLacking('validation') || isLacking('off-task'))) return last
  }
  if (last < epochs && !isOutOfPatience(progress)) return last + 1
  const best = bestOf(evaluations)?.version ?? version
  // The training may have been killed after the last epoch, before its test.
  const canTest = settings.evaluate !== undefined && sets.test.length > 0
  return last > 0 && canTest && isMissing(best, 'test') ? last : undefined
}

/** How many tasks of an epoch were trained on. */
export const tasksOf = (updates: readonly UpdateRow[], epoch: number): number =>
  updates
    .filter((row) => row.epoch === epoch)
    .reduce((sum, { members }) => sum + new Set(members.map(([task]) => task)).size, 0)

/** Whether an epoch is followed by evaluations. The last version is always evaluated, because it may be the best. */
export const isEvaluated = ({ settings }: Progress, epoch: number, epochs: number): boolean =>
  settings.evaluate !== undefined && (epoch >= epochs || epoch % settings.evaluate.every === 0)

/** Whether the last `patience` evaluations were no better than the best before them. */
export function isOutOfPatience({ settings, evaluations }: Progress): boolean {
  const best = bestOf(evaluations)
  if (settings.patience === undefined || best === undefined) return false
  const validated = evaluations.filter(({ split }) => split === 'validation')
  // A version equal to the best is not an improvement.
  const first = Math.min(
    ...validated.filter(({ summary }) => !isBetter(best.summary, summary)).map(({ version }) => version),
  )
  return validated.filter(({ version }) => version > first).length >= settings.patience
}

export const currentVersion = (updates: readonly UpdateRow[]): number =>
  updates.findLast(({ versionOut }) => versionOut !== null)?.versionOut ?? 0
