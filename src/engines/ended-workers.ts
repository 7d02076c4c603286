import { endOwnedProcesses } from '../owned-processes.ts'

const SWEEP_MS = 1000
/** A sweep reads the environment of every process of the machine. It may take at most this part of the driver's time. */
const SWEEP_SHARE = 0.02

const owners = new Set<string>()
let timer: NodeJS.Timeout | undefined
let notBefore = 0

/** Ends what tasks of this ended worker left running: now, or with that of other workers soon. */
export function sweepAfter(owner: string): void {
  owners.add(owner)
  // If this process exits before that, its exit listener sweeps.
  timer ??= setTimeout(sweepNow, Math.max(0, notBefore - performance.now())).unref()
}

/** Ends what tasks of all ended workers left running. */
export function sweepNow(): void {
  clearTimeout(timer)
  timer = undefined
  if (owners.size === 0) return
  const began = performance.now()
  endOwnedProcesses(owners)
  owners.clear()
  const now = performance.now()
  notBefore = now + Math.max(SWEEP_MS, (now - began) / SWEEP_SHARE)
}
