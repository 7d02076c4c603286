import { MAX_TIMER_MS } from '../../task-checks.ts'

/** A clock and its timers. Simulations provide their own. */
export interface Time {
  /** Milliseconds, as `performance.now()`. */
  now(): number
  /** Calls `run` once, unless the returned function is called first. */
  setTimeout(run: () => void, ms: number): () => void
}

/** Its timers do not keep the process alive; the callers that wait for permits do. */
export const realTime: Time = {
  now: () => performance.now(),
  setTimeout(run, ms) {
    const timer = setTimeout(run, Math.min(Math.ceil(ms), MAX_TIMER_MS)).unref()
    return () => clearTimeout(timer)
  },
}
