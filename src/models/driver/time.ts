import { MAX_TIMER_MS } from '../../task-checks.ts'

/** A clock and its timers. Simulations bring their own. */
export interface Time {
  /** Milliseconds, as `performance.now()`. */
  now(): number
  /** Calls `run` once, unless the function that it returns is called before. */
  setTimeout(run: () => void, ms: number): () => void
}

/** Its timers do not keep the process alive: whoever waits for a permit does. */
export const realTime: Time = {
  now: () => performance.now(),
  setTimeout(run, ms) {
    const timer = setTimeout(run, Math.min(Math.ceil(ms), MAX_TIMER_MS)).unref()
    return () => clearTimeout(timer)
  },
}
