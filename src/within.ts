import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for work up to a limit. False: it failed or was too slow; it goes on unobserved. */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const enough = new AbortController()
  const limit = sleep(ms, false, { signal: enough.signal }).catch(() => false)
  const done = work.then(
    () => true,
    () => false,
  )
  try {
    return await Promise.race([done, limit])
  } finally {
    enough.abort()
  }
}
