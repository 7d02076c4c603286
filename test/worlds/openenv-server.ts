import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ensureEnvironment, type PythonEnvSpec } from '../../dist/python/environment.js'
import { shortHash } from '../../dist/python/lock.js'
import { freePort } from '../support/free-port.ts'

const VERSION = '0.10.0'
/** It reads a web interface and more: eight seconds of CPU, on a machine that others use as well. */
export const READY_MS = 300_000

const lock = fileURLToPath(new URL(`python/openenv-${VERSION}.txt`, import.meta.url))
const needs: PythonEnvSpec = {
  title: `OpenEnv ${VERSION}`,
  folder: `openenv-${VERSION}`,
  packages: [`openenv==${VERSION}`],
  python: '3.11',
  lock: { path: lock, hash: shortHash(readFileSync(lock, 'utf8')) },
}

/** The Python of a real OpenEnv. Why there is none, if there is none; under CI that is a failure. */
export async function openEnvPython(): Promise<{ python: string } | { problem: string }> {
  try {
    return { python: await ensureEnvironment(needs, (line) => void process.stderr.write(`${line}\n`)) }
  } catch (error) {
    if (process.env.CI) throw error
    const problem = (error as Error).message
    process.stderr.write(`\n*** SKIPPED: OpenEnv cannot be set up here: ${problem} ***\n\n`)
    return { problem }
  }
}

/** python/counting_env.py, with room for so many sessions. */
export async function startCounting(python: string, sessions: number): Promise<{ url: string; child: ChildProcess }> {
  const port = await freePort()
  const script = fileURLToPath(new URL('python/counting_env.py', import.meta.url))
  const child = spawn(python, [script, String(port), String(sessions)], { stdio: ['ignore', 'inherit', 'inherit'] })
  const url = `http://127.0.0.1:${port}`
  for (const until = Date.now() + READY_MS; Date.now() < until; await sleep(200)) {
    if (child.exitCode !== null) throw new Error(`the OpenEnv server ended with code ${child.exitCode}`)
    const healthy = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) }).then(
      ({ ok }) => ok,
      () => false,
    )
    if (healthy) return { url, child }
  }
  child.kill('SIGKILL')
  throw new Error('the OpenEnv server does not come up')
}

/** What happens to a connection: nothing, it is cut after a few messages, or nothing more arrives after them. */
export type Fate = 'pass' | 'cut' | 'stall'

const MESSAGES = 4

/** A way to a server on which connections have fates; `fate` is told their number. */
export async function openProxy(
  to: string,
  fate: (connection: number) => Fate,
): Promise<{ url: string; server: Server; connections: () => number }> {
  const { hostname, port } = new URL(to)
  let connections = 0
  const server = createServer((near: Socket) => {
    const what = fate(connections++)
    const far = connect(Number(port), hostname)
    let messages = 0
    near.on('data', (chunk) => {
      if (++messages <= MESSAGES || what === 'pass') far.write(chunk)
      else if (what === 'cut') for (const socket of [near, far]) socket.destroy()
    })
    far.on('data', (chunk) => near.write(chunk))
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: own } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${own}`, server, connections: () => connections }
}
