// Shared by a worker and its watchdog thread. Importing this module starts nothing.

/** Name of the global that the watchdog evaluates in the stopped event loop, to learn whose code is running. */
export const BLAME = 'manyworlds.blame'

/** The watchdog's only message: it is watching. Node may post messages of its own on the same port. */
export const WATCHING = 'manyworlds.watching'

/** Ends this process and everything that its tasks started: a worker leads a process group of its own. */
export function endProcess(): void {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    // Not a group leader: a custom engine may not have made it one.
  }
  process.kill(process.pid, 'SIGKILL')
}
