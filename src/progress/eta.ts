/** The fewest finished tasks for an estimate, and the longest estimate. */
const ETA_TASKS = 5
const ETA_MAX_MS = 100 * 24 * 3_600_000

interface Progress {
  readonly total: number | undefined
  readonly done: number
  /** How many of the done tasks an earlier session has done. */
  readonly restored: number
  readonly running: number
  readonly perSecond: number | undefined
}

/** The remaining time of a run. Undefined if it cannot be estimated. */
export function remainingMs({ total, done, restored, running, perSecond }: Progress): number | undefined {
  if (total === undefined || perSecond === undefined || perSecond === 0) return undefined
  const left = total - done
  if (left <= 0) return undefined
  // Until as many tasks have finished as are running, the finished ones are the fast ones, and the estimate would be too low.
  if (done - restored < Math.max(ETA_TASKS, running)) return undefined
  const ms = (1000 * left) / perSecond
  return ms <= ETA_MAX_MS ? ms : undefined
}
