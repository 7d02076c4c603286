import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsOf, SPARK_VERSION } from '../../dist/engines/spark/environment.js'
import { ensureEnvironment } from '../../dist/python/environment.js'
import { BRIEF_JVM } from '../support/brief-jvms.ts'
import { freePort } from '../support/free-port.ts'
import { childrenOf, signal } from '../support/process-tree.ts'

export interface Member {
  readonly name: string
  readonly pid: number
  readonly child: ChildProcess
  log(): string
}

export interface SparkCluster {
  /** Without the token. */
  readonly address: string
  readonly remote: string
  readonly master: string
  readonly workers: Member[]
  server: Member
  /** The JVM that a Spark worker has started for the application, if it is there. */
  executorOf(worker: Member): number | undefined
  /** The hosts of the slots: Node processes that an executor has started. */
  slotsOf(executor: number): number[]
  /** The hosts of all executors. */
  slots(): number[]
  addWorker(): Promise<Member>
  /** The Connect server dies, and another takes its place. */
  restartServer(): Promise<void>
  /** Everything that a cluster has started and that is still there. */
  processes(): number[]
  stop(): Promise<void>
}

export interface ClusterOptions {
  readonly workers?: number
  readonly cores?: number
  /** Settings of the application. */
  readonly conf?: Readonly<Record<string, string>>
  /** More variables for the workers, and so for the executors. */
  readonly env?: NodeJS.ProcessEnv
  readonly version?: string
}

const START_MS = 120_000
export const TOKEN = 'a-token-for-this-test'

/** A real standalone cluster on one machine: a master, workers with an executor each, and a Connect server that wants a token. */
export async function startCluster({
  workers = 2,
  cores = 3,
  conf = {},
  env = {},
  version = SPARK_VERSION,
}: ClusterOptions = {}): Promise<SparkCluster> {
  const python = await ensureEnvironment(needsOf(version), (line) => void process.stderr.write(`${line}\n`))
  const home = join(python, '..', '..', 'lib', 'python3.11', 'site-packages', 'pyspark')
  const folder = mkdtempSync(join(tmpdir(), 'mws-'))
  const running: Member[] = []
  let number = 0
  const start = async (name: string, ready: RegExp, command: string, args: string[], more: NodeJS.ProcessEnv = {}) => {
    const path = join(folder, `${name}-${number++}.log`)
    const file = openSync(path, 'w')
    const child = spawn(join(home, 'bin', command), args, {
      ...{ stdio: ['ignore', file, file], detached: true, cwd: folder },
      env: {
        ...process.env,
        ...{ SPARK_HOME: home, SPARK_LOCAL_IP: '127.0.0.1', SPARK_LOCAL_DIRS: folder, SPARK_DAEMON_MEMORY: '256m' },
        ...more,
      },
    })
    const member = { name, pid: child.pid!, child, log: () => readFileSync(path, 'utf8') }
    running.push(member)
    for (const end = Date.now() + START_MS; !ready.test(member.log()); await sleep(100))
      if (child.exitCode !== null || Date.now() > end) throw new Error(`${name} did not start:\n${member.log()}`)
    return member
  }
  const endAll = async () => {
    for (const { pid } of [...running].reverse()) endTree(pid)
    for (const { child } of running)
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((resolve) => child.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
  const startWorker = (master: string) =>
    start(
      'worker',
      /registered with master/,
      'spark-class',
      [
        ...['org.apache.spark.deploy.worker.Worker', '--host', '127.0.0.1', '--webui-port', '0'],
        ...['--cores', `${cores}`, '--memory', '1g', '--work-dir', join(folder, `work-${number}`), master],
      ],
      env,
    )
  try {
    const [port, connectPort] = [await freePort(), await freePort()]
    const master = `spark://127.0.0.1:${port}`
    await start('master', /I have been elected leader/, 'spark-class', [
      ...['org.apache.spark.deploy.master.Master', '--host', '127.0.0.1', '--port', `${port}`, '--webui-port', '0'],
    ])
    const first = await Promise.all(Array.from({ length: workers }, () => startWorker(master)))
    const settings: Record<string, string> = {
      'spark.connect.grpc.binding.port': `${connectPort}`,
      'spark.connect.grpc.binding.address': '127.0.0.1',
      'spark.ui.enabled': 'false',
      'spark.executor.memory': '512m',
      'spark.executor.extraJavaOptions': BRIEF_JVM,
      'spark.driver.host': '127.0.0.1',
      ...conf,
    }
    const startServer = () =>
      start(
        'server',
        /SparkConnectServer: Spark Connect server started|Spark Connect server started at/,
        'spark-submit',
        [
          ...['--class', 'org.apache.spark.sql.connect.service.SparkConnectServer', '--master', master],
          ...Object.entries(settings).flatMap(([key, value]) => ['--conf', `${key}=${value}`]),
          'spark-internal',
        ],
        { SPARK_CONNECT_AUTHENTICATE_TOKEN: TOKEN, SPARK_DAEMON_MEMORY: undefined },
      )
    const server = await startServer()
    await listening(connectPort)
    const address = `sc://127.0.0.1:${connectPort}`
    const cluster: SparkCluster = {
      ...{ address, remote: `${address}/;token=${TOKEN}`, master, workers: first, server },
      executorOf: ({ pid }) => childrenOf(pid).find((one) => commandOf(one).includes('CoarseGrainedExecutorBackend')),
      slotsOf: (executor) => childrenOf(executor).filter((one) => commandOf(one).endsWith('manyworlds-slot ')),
      slots: () =>
        cluster.workers
          .map((worker) => cluster.executorOf(worker))
          .flatMap((executor) => (executor === undefined ? [] : cluster.slotsOf(executor))),
      addWorker: async () => {
        const worker = await startWorker(master)
        cluster.workers.push(worker)
        return worker
      },
      restartServer: async () => {
        endTree(cluster.server.pid)
        cluster.server = await startServer()
        await listening(connectPort)
      },
      processes: () => running.flatMap(({ pid }) => childrenOf(pid)),
      stop: endAll,
    }
    // Spark counts the cores of those that are there.
    for (const end = Date.now() + START_MS; !first.every((worker) => cluster.executorOf(worker)); await sleep(100))
      if (Date.now() > end) throw new Error(`no executors:\n${server.log()}`)
    return cluster
  } catch (error) {
    await endAll()
    throw error
  }
}

export function endTree(pid: number): void {
  for (const one of [pid, ...childrenOf(pid)]) signal(one, 'SIGKILL')
  signal(-pid, 'SIGKILL')
}

export const commandOf = (pid: number): string => inProc(pid, 'cmdline').replaceAll('\0', ' ')

/** `NAME=value`, all of them. */
export const environmentOf = (pid: number): string[] => inProc(pid, 'environ').split('\0')

function inProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

async function listening(port: number): Promise<void> {
  for (const end = Date.now() + START_MS; ; await sleep(100)) {
    const there = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      })
      socket.once('error', () => resolve(false))
    })
    if (there) return
    if (Date.now() > end) throw new Error(`nobody listens on port ${port}`)
  }
}
