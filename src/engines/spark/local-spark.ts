import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import { isAlive } from '../../is-alive.ts'
import { connectWords } from '../../network/error-words.ts'
import { probeTcp } from '../../network/tcp-probe.ts'
import { ownPackage } from '../../own-package.ts'
import { keptBytecode } from '../../python/bytecode.ts'
import { ensureEnvironment } from '../../python/environment.ts'
import { stderrTail } from '../../stderr-tail.ts'
import { needsOf, SPARK_VERSION } from './environment.ts'
import { findJava } from './java.ts'

const STDERR_CHARS = 8000
/** Spark's own shutdown takes a few seconds. */
const STOP_MS = 10_000
/** For the kernel to remove processes that were killed. */
const KILLED_MS = 5000
const LOOK_MS = 50
const CALL_MS = 5000
/** How often the user is told that Spark is still starting. */
const STILL_MS = 30_000

/** A Spark on this machine that ends with this process. */
export interface LocalSpark {
  /** Its Connect server. */
  readonly remote: string
  /** How it ended, with the end of its stderr, if it was not stopped. */
  readonly ended: Promise<string>
  keepAlive(alive: boolean): void
  /** Resolves when no process of it is left. */
  stop(): Promise<void>
}

export interface LocalSparkOptions {
  readonly master: string
  readonly version?: string | undefined
  readonly conf: Readonly<Record<string, string>>
}

/** Starts Spark with a Connect server that requires a token. */
export async function startLocalSpark(
  { master, version = SPARK_VERSION, conf }: LocalSparkOptions,
  notice: (line: string) => void,
): Promise<LocalSpark> {
  findJava()
  await refuseMissingMaster(master)
  const python = await ensureEnvironment(needsOf(version), notice)
  notice(`starting Spark ${version} here, on ${master}; this takes 10 to 40 s`)
  const token = randomBytes(24).toString('hex')
  const child = spawn(python, [join(ownPackage.folder, 'python', 'spark_host.py')], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Its own process group: Ctrl-C reaches only this process, which then ends Spark.
    detached: true,
    env: { ...environment(), SPARK_CONNECT_AUTHENTICATE_TOKEN: token, ...keptBytecode(python) },
  })
  const stderr = stderrTail(child.stderr, { chars: STDERR_CHARS })
  child.stdin.on('error', () => {})
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`${signal ?? `exit code ${code}`}\n${stderr()}`))
  })
  child.stdin.write(`${JSON.stringify({ master, name: 'manyworlds', conf: { ...DEFAULTS(master), ...conf } })}\n`)
  const began = Date.now()
  const still = setInterval(() => {
    notice(`Spark is still starting (${Math.round((Date.now() - began) / 1000)} s)`)
  }, STILL_MS)
  const started = await Promise.race([readReady(child), ended]).finally(() => clearInterval(still))
  if (typeof started === 'string') throw startFailed(master, started)
  const streams = [child.stdin, child.stdout, child.stderr] as unknown as Socket[]
  return {
    remote: `sc://127.0.0.1:${started.port}/;token=${token}`,
    ended,
    keepAlive: (alive) => {
      for (const one of [child, ...streams]) alive ? one.ref() : one.unref()
    },
    stop: () => end(child, started.jvm),
  }
}

/** Spark itself would retry for a minute without saying why. */
async function refuseMissingMaster(master: string): Promise<void> {
  const [, host, port] = /^spark:\/\/([^:,]+):(\d+)$/.exec(master) ?? []
  if (host === undefined) return
  const probe = await probeTcp({ host, port: Number(port) }, { connectMs: CALL_MS })
  if (probe.outcome !== 'failed') return
  const { code, message } = probe.error
  throw new ManyworldsError(
    'SPARK_FAILED',
    `cannot connect to spark.master ${master}: ${connectWords(code) ?? message}`,
    { cause: probe.error },
  )
}

/** The environment without variables of another Spark or Python. */
function environment(): NodeJS.ProcessEnv {
  const { SPARK_HOME, SPARK_REMOTE, SPARK_API_MODE, PYSPARK_SUBMIT_ARGS, PYTHONPATH, PYTHONHOME, ...env } = process.env
  delete env.SPARK_CONNECT_MODE_ENABLED
  return env
}

/** Default settings; the user's own override them. */
const DEFAULTS = (master: string): Record<string, string> => ({
  'spark.connect.grpc.binding.address': '127.0.0.1',
  'spark.connect.grpc.binding.port': '0',
  'spark.ui.enabled': 'false',
  'spark.ui.showConsoleProgress': 'false',
  'spark.speculation': 'false',
  // Isolate the files of sessions.
  'spark.sql.artifact.isolation.enabled': 'true',
  // Use loopback: host names may resolve to anything, and everything runs on this machine.
  ...(/^local\b/.test(master) ? { 'spark.driver.host': '127.0.0.1', 'spark.driver.bindAddress': '127.0.0.1' } : {}),
})

function readReady(child: ChildProcess): Promise<{ port: number; jvm: number }> {
  return new Promise((resolve) => {
    let text = ''
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      text += part
      const line = text.slice(0, text.indexOf('\n') + 1)
      if (line !== '') resolve(JSON.parse(line))
    })
  })
}

async function end(child: ChildProcess, jvm: number): Promise<void> {
  child.stdin!.end()
  if (await hasEnded(child, jvm, STOP_MS)) return
  for (const pid of [-child.pid!, jvm])
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has already ended.
    }
  await hasEnded(child, jvm, KILLED_MS)
}

async function hasEnded(child: ChildProcess, jvm: number, withinMs: number): Promise<boolean> {
  for (const until = Date.now() + withinMs; Date.now() < until; await sleep(LOOK_MS))
    if ((child.exitCode ?? child.signalCode) !== null && !isAlive(jvm)) return true
  return false
}

function startFailed(master: string, how: string): ManyworldsError {
  const lines = how
    .split('\n')
    .filter((line) => /Exception|Error|Invalid|refused|cannot/i.test(line) && !/^\s*raise |GATEWAY_EXITED/.test(line))
  const telling = [...new Set(lines.map((line) => line.trim()))].slice(0, 4).join('\n')
  return new ManyworldsError(
    'SPARK_FAILED',
    `Spark could not be started on ${master} (${how.split('\n', 1)[0]})${telling === '' ? `:\n${how.slice(-1000)}` : `:\n${telling}`}`,
  )
}
