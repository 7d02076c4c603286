/** Ends this process and all that its tasks started: a worker leads a process group of its own. */
export function endProcess(): void {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    // Not a group leader (a custom engine may not have made it one).
  }
  process.kill(process.pid, 'SIGKILL')
}
