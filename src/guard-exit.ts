/** Time for exit listeners and Node's own shutdown together. A process that is killed loses its exit code, so leave time to a busy machine. */
const EXIT_MS = 10_000

/**
 * Sleeps for the time limit and then kills. The end of the watched process closes stdin, which ends `sleep`. So a pid that was
 * reused by another process is never killed.
 */
const SCRIPT = `exec 3<&0
sleep "$1" & sleep=$!
shift
{ read -r _; kill "$sleep"; } <&3 2>/dev/null &
wait "$sleep" && kill -s KILL -- "$@"`

interface Doomed {
  /** It leads a process group, which is killed with it. */
  readonly group?: boolean
}

/**
 * Makes sure that this process is gone a few seconds after it began to exit, whatever its exit listeners do, and also if Node
 * hangs in its own shutdown (nodejs/node#54918). Its threads have ended by then, so another process has to do it.
 */
export function guardExit(doomed: Doomed = {}): void {
  process.prependListener('exit', () => mustEndWithin(EXIT_MS, doomed))
}

/** Kills this process unless it ends within that time. Needs `sh`. */
export function mustEndWithin(ms: number, { group = false }: Doomed = {}): void {
  if (process.platform === 'win32') return
  // Not imported: most processes that load this never need it.
  const { spawn } = process.getBuiltinModule('node:child_process')
  const targets = [...(group ? [`-${process.pid}`] : []), `${process.pid}`]
  const guard = spawn('/bin/sh', ['-c', SCRIPT, 'manyworlds-exit', `${Math.ceil(ms / 1000)}`, ...targets], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    // Its own session, so that it is not killed with the group.
    detached: true,
  })
  guard.on('error', () => {})
  guard.stdin?.on('error', () => {})
  guard.unref()
  ;(guard.stdin as { unref?(): void } | null)?.unref?.()
}
