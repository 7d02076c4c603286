import type { OpenPolicy } from './policy.ts'

/** Disposes of a policy when the driver closes the connection of its worker. */
export function disposeWith(open: OpenPolicy, signal: AbortSignal): void {
  if (open[Symbol.asyncDispose] === undefined) return
  const dispose = async () => open[Symbol.asyncDispose]?.()
  // The worker is exiting, so errors cannot be reported.
  signal.addEventListener('abort', () => void dispose().catch(() => {}), { once: true })
}
