import type { OpenPolicy } from './policy.ts'

/** Disposes of a policy when its worker leaves. */
export function disposeWith(open: OpenPolicy, signal: AbortSignal): void {
  if (open[Symbol.asyncDispose] === undefined) return
  const dispose = async () => open[Symbol.asyncDispose]?.()
  // The worker leaves: nobody is there to be told.
  signal.addEventListener('abort', () => void dispose().catch(() => {}), { once: true })
}
