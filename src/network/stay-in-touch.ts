import { setTimeout as sleep } from 'node:timers/promises'
import type { DialError } from './dial.ts'
import type { Session } from './session.ts'

/** While a session may still go on, every second counts. */
const FIRST_MS = 100
const LONGEST_MS = 1000

/** Makes a new connection whenever the session has lost its own. Resolves when it is over, or nobody wants it any more. */
export async function stayInTouch(session: Session, redial: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let wait = FIRST_MS
  while (!session.over && !signal.aborted) {
    if (session.attached) {
      wait = FIRST_MS
      await session.untilDetached()
      continue
    }
    try {
      await redial()
    } catch (error) {
      const { nobodyThere, sessionGone, message } = error as DialError
      // Nothing is gained by waiting for a process that has ended.
      if (nobodyThere) session.end('its process has ended')
      else if (sessionGone) session.end(message)
      else await nap(wait, signal)
      wait = Math.min(LONGEST_MS, 2 * wait)
    }
  }
}

/** With jitter, so that a hundred who lost the same machine do not call it at the same instant. */
export const nap = (ms: number, signal: AbortSignal): Promise<void> =>
  // It keeps nobody alive: a driver whose nodes are gone may end, and a host has its own reasons to stay.
  sleep(ms * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => {})
