import { setTimeout as sleep } from 'node:timers/promises'
import type { DialError } from './dial.ts'
import type { Session } from './session.ts'

/** Short, because the session is lost after some seconds. */
const FIRST_MS = 100
const LONGEST_MS = 1000

/** Makes a new connection whenever the session has lost its own. Resolves when the session is over or aborted. */
export async function reconnect(session: Session, redial: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let wait = FIRST_MS
  while (!session.over && !signal.aborted) {
    if (session.attached) {
      wait = FIRST_MS
      await session.untilDetached()
      continue
    }
    if (session.abandoned) {
      await nap(LONGEST_MS, signal)
      continue
    }
    try {
      await redial()
    } catch (error) {
      const { nobodyThere, sessionEnded, sessionUnknown, message } = error as DialError
      if (nobodyThere) session.onRefused()
      else if (sessionEnded) session.end(message)
      else if (sessionUnknown) session.lose(message)
      if (!session.endIfGone()) await nap(wait, signal)
      wait = Math.min(LONGEST_MS, 2 * wait)
    }
  }
}

/** With jitter, so that a hundred peers that lost the same machine do not all call it at once. */
export const nap = (ms: number, signal: AbortSignal): Promise<void> =>
  // Does not keep the process alive: a driver without nodes may end, and a host has other handles.
  sleep(ms * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => {})
