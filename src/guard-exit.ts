/** For exit listeners and Node's own shutdown together. */
const EXIT_MS = 5000

/**
 * Waits with `sleep` until the time is over, and then kills; the end of the process to be watched closes stdin, which ends
 * `sleep`. So the number of a process that is gone, which another may have by then, is never used.
 */
const SCRIPT = `exec 3<&0
sleep "$1" & sleep=$!
shift
{ read -r _; kill "$sleep"; } <&3 2>/dev/null &
wait "$sleep" && kill -s KILL -- "$@"`

interface Doomed {
  /** It leads a process group, which ends with it. */
  readonly group?: boolean
}

/**
 * Makes sure that this process is gone a few seconds after it began to exit, whatever its exit listeners do, and also when
 * Node hangs in its own shutdown (nodejs/node#54918). By then its threads have ended, so another process has to do it.
 */
export function guardExit(doomed: Doomed = {}): void {
  process.prependListener('exit', () => mustEndWithin(EXIT_MS, doomed))
}

/** This process is killed unless it ends within that time. Where there is no `sh`, nobody can see to that. */
export function mustEndWithin(ms: number, { group = false }: Doomed = {}): void {
  if (process.platform === 'win32') return
  // Not imported: most processes that load this never need it.
  const { spawn } = process.getBuiltinModule('node:child_process')
  const targets = [...(group ? [`-${process.pid}`] : []), `${process.pid}`]
  const guard = spawn('/bin/sh', ['-c', SCRIPT, 'manyworlds-exit', `${Math.ceil(ms / 1000)}`, ...targets], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    // A session of its own, so that it is not ended with the group.
    detached: true,
  })
  guard.on('error', () => {})
  guard.stdin?.on('error', () => {})
  guard.unref()
  ;(guard.stdin as { unref?(): void } | null)?.unref?.()
}
