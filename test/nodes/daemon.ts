import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
/** See `no-orphans.ts`: by this it knows the workers of a test run. */
const MARKER = 'MANYWORLDS_TEST_RUN'
const START_MS = 60_000

export interface Daemon {
  readonly child: ChildProcess
  readonly pid: number
  readonly port: number
  readonly address: string
  /** What it has printed so far. */
  output(): string
  /** Resolves with the exit code, or the signal. */
  readonly exited: Promise<number | string | null>
  /** Ends it at once, if it still runs. */
  kill(signal?: NodeJS.Signals): Promise<void>
}

export interface DaemonOptions {
  readonly args?: readonly string[]
  readonly host?: string
  readonly port?: number
  readonly env?: NodeJS.ProcessEnv
  /** What stands before the command: `ip netns exec …`. */
  readonly before?: readonly string[]
  readonly node?: string
  /** Where code is kept: a new folder, or the default one. */
  readonly cache?: 'new' | 'default'
}

/** A node as its user starts it: `manyworlds node --listen`. With its own cache, so that no test lives off another. */
export async function startNode({
  args = [],
  host = '127.0.0.1',
  port = 0,
  env = process.env,
  before = [],
  node = process.execPath,
  cache: where = 'new',
}: DaemonOptions = {}): Promise<Daemon> {
  const cache = mkdtempSync(join(tmpdir(), 'mw-node-cache-'))
  const own = where === 'new' ? ['--cache-dir', cache] : []
  const daemon = startDaemon({
    before,
    node,
    env,
    args: ['--listen', `${host}:${port}`, '--workers', '2', ...own, '--pass-env', MARKER, ...args],
  })
  void daemon.exited.then(() => rmSync(cache, { recursive: true, force: true }))
  const listening = /listens on wss?:\/\/(\S+):(\d+),/
  await until(daemon, listening)
  const found = listening.exec(daemon.output())!
  return { ...daemon, port: Number(found[2]), address: `${host}:${found[2]}` }
}

/** A node that calls a driver. */
export function startDaemon({
  args,
  before = [],
  node = process.execPath,
  env = process.env,
}: DaemonOptions): Omit<Daemon, 'port' | 'address'> {
  const [command, ...rest] = [...before, node, MAIN, 'node', ...(args ?? [])]
  const child = spawn(command!, rest, { stdio: ['ignore', 'ignore', 'pipe'], env })
  let text = ''
  child.stderr!.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  )
  return {
    child,
    pid: child.pid!,
    output: () => text,
    exited,
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await exited
    },
  }
}

/** Waits until a daemon has printed something. */
export async function until(
  daemon: Pick<Daemon, 'output' | 'exited'>,
  pattern: RegExp,
  withinMs = START_MS,
): Promise<void> {
  const end = Date.now() + withinMs
  let over: unknown
  void daemon.exited.then((how) => {
    over = how ?? 'ended'
  })
  while (!pattern.test(daemon.output())) {
    if (over !== undefined || Date.now() > end)
      throw new Error(
        `no ${pattern} from the node (${over === undefined ? 'it still runs' : `it ended: ${over}`}):\n${daemon.output()}`,
      )
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
