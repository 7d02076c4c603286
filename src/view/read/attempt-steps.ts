import type { PagedRun } from '../../store/paged/paged-run.ts'
import { oldSteps, startOf } from '../../store/paged/task-record.ts'
import { StoredSteps } from '../../store/stored-steps.ts'
import type { Step } from '../../trajectory/step.ts'

/**
 * Identifies the steps of an attempt in requests: the number of its start. In stores of version 1, the steps are a value of the
 * attempt: the negative position of that.
 */
export const stepsKey = (start: number | null, seq: number, hasOldSteps: boolean): number | null =>
  start ?? (hasOldSteps ? -seq : null)

/** Undefined: the task has no such attempt. */
export function attemptSteps(run: PagedRun, task: number, key: number): AsyncIterable<Step> | undefined {
  if (key > 0)
    return startOf(run, task, key) === undefined ? undefined : new StoredSteps(run.from, { start: key }).stream()
  const value = oldSteps(run, task, -key)
  return value === undefined || value === null ? undefined : new StoredSteps(run.from, { value }).stream()
}
