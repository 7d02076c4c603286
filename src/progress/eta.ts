/** There is no estimate from fewer tasks than this, nor one that lies further ahead. */
const ETA_TASKS = 5
const ETA_MAX_MS = 100 * 24 * 3_600_000

interface Progress {
  readonly total: number | undefined
  readonly done: number
  /** Of the done ones: those that an earlier session had done. */
  readonly restored: number
  readonly running: number
  readonly perSecond: number | undefined
}

/** How long a run will take from now on. Undefined: nobody can know. */
export function remainingMs({ total, done, restored, running, perSecond }: Progress): number | undefined {
  if (total === undefined || perSecond === undefined || perSecond === 0) return undefined
  const left = total - done
  if (left <= 0) return undefined
  // Until as many have finished as are running, those that have are the quick ones.
  if (done - restored < Math.max(ETA_TASKS, running)) return undefined
  const ms = (1000 * left) / perSecond
  return ms <= ETA_MAX_MS ? ms : undefined
}
