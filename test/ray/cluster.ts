import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsOf, RAY_VERSION } from '../../dist/engines/ray/environment.js'
import { keptBytecode } from '../../dist/python/bytecode.js'
import { ensureEnvironment } from '../../dist/python/environment.js'
import { freePort } from '../support/free-port.ts'
import { childrenOf, signal } from '../support/process-tree.ts'

export interface Raylet {
  readonly child: ChildProcess
  readonly pid: number
}

export interface RayCluster {
  readonly address: string
  /** Of its Ray Client server: `ray://…`. */
  readonly clientAddress: string
  readonly tokenFile: string
  /** Of each raylet: so many workers have room on it. */
  readonly cpus: number
  /** The first is the head. */
  readonly raylets: Raylet[]
  addRaylet(): Promise<Raylet>
  stop(): Promise<void>
}

const START_MS = 90_000
/** On a machine that is busy with other tests, a raylet crashes if its agents take more than 15 s to come up. */
const TRIES = 6

/** A real cluster: a head and more raylets, each with processes of its own, on one machine, with token authentication. */
export async function startCluster(raylets: number, cpus = 2): Promise<RayCluster> {
  const python = await ensureEnvironment(needsOf(RAY_VERSION), (line) => void process.stderr.write(`${line}\n`))
  const ray = join(python, '..', 'ray')
  const folder = mkdtempSync(join(tmpdir(), 'mwr-'))
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, 'a-token-for-this-test-that-is-long-enough-for-ray', { mode: 0o600 })
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const clientPort = await freePort()
  const env = {
    ...process.env,
    ...keptBytecode(python),
    RAY_AUTH_MODE: 'token',
    RAY_AUTH_TOKEN_PATH: tokenFile,
    RAY_USAGE_STATS_ENABLED: '0',
    RAY_raylet_start_wait_time_s: '120',
    // A runtime environment that cannot be made is tried once, not three times.
    RUNTIME_ENV_RETRY_TIMES: '1',
  }
  let number = 0
  const running: ChildProcess[] = []
  const startOnce = async (...args: string[]): Promise<Raylet> => {
    // Into a file: Ray keeps what it is given open, and a pipe would never end.
    const path = join(folder, `raylet-${number++}.log`)
    const log = openSync(path, 'w')
    const child = spawn(
      ray,
      ['start', '--block', `--num-cpus=${cpus}`, '--node-ip-address=127.0.0.1', '--disable-usage-stats', ...args],
      {
        stdio: ['ignore', log, log],
        env,
        detached: true,
      },
    )
    running.push(child)
    const end = Date.now() + START_MS
    while (!/Ray runtime started|--block/.test(readFileSync(path, 'utf8'))) {
      // `ray start` waits for a raylet that crashed as if it were still to come.
      const over = child.exitCode !== null || Date.now() > end || childrenOf(child.pid!).some(isDefunct)
      if (over) throw new Error(`ray start: ${readFileSync(path, 'utf8')}`)
      await sleep(100)
    }
    return { child, pid: child.pid! }
  }
  const start = async (...args: string[]): Promise<Raylet> => {
    for (let tries = 1; ; tries++)
      try {
        return await startOnce(...args)
      } catch (error) {
        endTree(running.pop()!)
        if (tries === TRIES) throw error
      }
  }
  const cluster: RayCluster = {
    address,
    clientAddress: `ray://127.0.0.1:${clientPort}`,
    tokenFile,
    cpus,
    raylets: [],
    addRaylet: async () => {
      const raylet = await start(`--address=${address}`)
      cluster.raylets.push(raylet)
      return raylet
    },
    stop: async () => {
      for (const child of running.reverse()) {
        endTree(child)
        if (child.exitCode === null && child.signalCode === null)
          await new Promise((resolve) => child.once('exit', resolve))
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  try {
    const client = `--ray-client-server-port=${clientPort}`
    cluster.raylets.push(
      await start('--head', `--port=${port}`, '--include-dashboard=false', `--temp-dir=${folder}`, client),
    )
    // `ray start` does not wait for it.
    await untilListening(clientPort)
    for (let more = 1; more < raylets; more++) await cluster.addRaylet()
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

async function untilListening(port: number): Promise<void> {
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
  for (const end = Date.now() + START_MS; !(await accepts()); await sleep(100))
    if (Date.now() > end) throw new Error(`the Ray Client server does not listen on port ${port}`)
}

function endTree({ pid }: ChildProcess): void {
  for (const one of [pid!, ...childrenOf(pid!)]) signal(one, 'SIGKILL')
  signal(-pid!, 'SIGKILL')
}

/** The Node processes of workers below a raylet, and the actors that hold them. */
export function below(raylet: number) {
  const all = childrenOf(raylet).map((pid) => ({ pid, command: commandOf(pid) }))
  return {
    // Not the Python that starts Node, whose arguments name both. Any other word may be in the random name of a folder.
    workers: all.filter(({ command }) => /^(\S*\/)?node .*manyworlds\.bundle\.mjs/.test(command)),
    actors: all.filter(({ command }) => command.startsWith('ray::Worker')),
  }
}

const isDefunct = (pid: number): boolean => {
  try {
    return /^\d+ \(raylet\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
