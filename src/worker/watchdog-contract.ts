// Shared by a worker and its watchdog thread. Importing this module starts nothing.
import { endOwnedProcesses } from '../owned-processes.ts'

/** Name of the global that the watchdog evaluates in the stopped event loop, to learn whose code is running. */
export const BLAME = 'manyworlds.blame'

/** What the memory holds that they share, as indexes of doubles. */
export const SHARED = {
  /** The nearest deadline, in epoch ms. */
  deadline: 0,
  /** The number of running tasks. */
  tasks: 1,
  /** 1: that deadline is of a running task. 0: its task has ended, or it is of code that outlived its task. */
  isLive: 2,
  /** The latest deadline of any task so far. */
  latest: 3,
  bytes: 32,
} as const

/** The watchdog's only message: it is watching. Node may post messages of its own on the same port. */
export const WATCHING = 'manyworlds.watching'

/** Ends this worker and everything that its tasks started, also what left its process group. */
export function endWorker(owner: string | undefined): void {
  if (owner !== undefined) endOwnedProcesses(new Set([owner]))
  endProcess()
}

/** Ends this process and its process group: a worker leads one of its own. */
export function endProcess(): void {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    // Not a group leader: a custom engine may not have made it one.
  }
  process.kill(process.pid, 'SIGKILL')
}
