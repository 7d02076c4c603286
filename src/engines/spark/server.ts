import { ManyworldsError } from '../../errors.ts'
import { requirePeers, SPARK_PEERS } from '../../optional-peers.ts'
import type { ConnectSession } from './connect/session.ts'
import type { LocalSpark } from './local-spark.ts'
import type { SparkOptions } from './options.ts'

/** A Spark to work with: a remote one, or one started on this machine. */
export interface Server {
  /** Its master, if it was started here. */
  readonly master: string | undefined
  readonly remote: string
  /** Resolves when a Spark that was started here ends. Never resolves for others. */
  readonly ended: Promise<string>
  /** Opens a session with its own settings. `shared`: uses the session that the address names, if any. */
  newSession(shared?: boolean): Promise<ConnectSession>
  keepAlive(alive: boolean): void
  /** Releases it. `now`: a Spark that was started here is stopped before this resolves, unless others use it. */
  release(now: boolean): Promise<void>
}

interface Shared {
  readonly key: string
  readonly master: string
  readonly spark: Promise<LocalSpark>
  users: number
  /** Users that need it to keep the process alive. */
  awake: number
  timer: NodeJS.Timeout | undefined
}

/** One per local Spark, shared by the engine, the source of its tasks and the sink of its responses. */
const started = new Map<string, Shared>()
/** How long an unused local Spark is kept for the next user. */
const LINGER_MS = 60_000
const DEFAULT_RESERVE = 1
const OLDEST_SPARK = 4
/** The gRPC status UNKNOWN. */
const UNKNOWN = 2

export const reserveOf = ({ reserve = DEFAULT_RESERVE }: SparkOptions): number => reserve

/**
 * `workers`: how many it must hold in addition to queries. The first caller decides: an engine asks when it starts, which is
 * before its first task is read.
 */
export async function openServer(
  options: SparkOptions,
  inLocal: boolean,
  workers: number,
  notice: (line: string) => void,
): Promise<Server> {
  if (!inLocal) return remoteServer(options)
  const key = JSON.stringify([options.master, options.version, options.conf])
  let shared = started.get(key)
  if (shared === undefined) {
    const master = options.master ?? `local[${workers + reserveOf(options)}]`
    shared = { key, master, spark: start(master, options, notice), users: 0, awake: 0, timer: undefined }
    started.set(key, shared)
  }
  return localServer(shared, options)
}

async function start(
  master: string,
  { conf = {}, version }: SparkOptions,
  notice: (line: string) => void,
): Promise<LocalSpark> {
  const { startLocalSpark } = await import('./local-spark.ts')
  const texts = Object.fromEntries(Object.entries(conf).map(([name, value]) => [name, String(value)]))
  return startLocalSpark({ master, version, conf: texts }, notice)
}

async function remoteServer(options: SparkOptions): Promise<Server> {
  const { remoteOf } = await import('./remote.ts')
  const remote = remoteOf(options)
  return {
    ...{ master: undefined, remote, ended: new Promise<string>(() => {}), keepAlive: () => {} },
    newSession: (shared) => newSession(remote, options, shared).catch((error) => blame(error, options)),
    release: async () => {},
  }
}

async function localServer(shared: Shared, options: SparkOptions): Promise<Server> {
  shared.users++
  shared.awake++
  clearTimeout(shared.timer)
  let awake = true
  let spark: LocalSpark
  try {
    spark = await shared.spark
  } catch (error) {
    forget(shared)
    throw error
  }
  void spark.ended.then(() => forget(shared))
  spark.keepAlive(true)
  const keepAlive = (alive: boolean) => {
    if (alive === awake) return
    awake = alive
    shared.awake += alive ? 1 : -1
    spark.keepAlive(shared.awake > 0)
  }
  return {
    ...{ master: shared.master, remote: spark.remote, ended: spark.ended, keepAlive },
    // It was started with these settings already.
    newSession: () => newSession(spark.remote, { ...options, conf: {} }).catch((error) => blame(error, options)),
    release: async (now) => {
      keepAlive(false)
      if (--shared.users > 0) return
      if (!now) {
        shared.timer = setTimeout(() => void stop(shared), LINGER_MS)
        shared.timer.unref()
        return
      }
      await stop(shared)
    },
  }
}

async function stop(shared: Shared): Promise<void> {
  forget(shared)
  clearTimeout(shared.timer)
  await (await shared.spark).stop()
}

function forget(shared: Shared): void {
  if (started.get(shared.key) === shared) started.delete(shared.key)
}

async function newSession(
  remote: string,
  { conf = {}, remoteTls }: SparkOptions,
  shared = false,
): Promise<ConnectSession> {
  requirePeers('a session on Spark', SPARK_PEERS)
  const [{ ConnectSession }, { parseRemote }, { readRemoteTls }] = await Promise.all([
    import('./connect/session.ts'),
    import('./connect/remote.ts'),
    import('./remote.ts'),
  ])
  const tls = readRemoteTls(remoteTls)
  const { sessionId, ...others } = parseRemote(remote)
  const named = shared && sessionId !== undefined ? { sessionId } : {}
  const session = new ConnectSession({ remote: { ...others, ...named }, ...(tls === undefined ? {} : { tls }) })
  const pairs = Object.fromEntries(Object.entries(conf).map(([name, value]) => [name, String(value)]))
  try {
    refuseOld(await session.version(), remote)
    if (Object.keys(pairs).length > 0) await session.setConfig(pairs)
  } catch (error) {
    session.close()
    throw error
  }
  return session
}

/** Spark does not say which setting is invalid. */
function blame(error: Error & { grpcCode?: number; errorClass?: string }, { conf = {} }: SparkOptions): never {
  const names = Object.keys(conf)
  if (names.length === 0 || error.grpcCode !== UNKNOWN || error.errorClass !== undefined) throw error
  throw new ManyworldsError(
    'SPARK_FAILED',
    `Spark cannot open a session (${error.message}): a value in spark.conf may be wrong (${names.join(', ')})`,
    { cause: error },
  )
}

/** Checks that need no running Spark. */
export function refuseSmallMaster(options: SparkOptions): void {
  const [, cores] = /^local(?:\[(\d+)[,\]])?/.exec(options.master ?? '') ?? []
  const count = options.master === 'local' ? 1 : Number(cores)
  if (!(count <= reserveOf(options))) return
  throw new ManyworldsError(
    'SPARK_IMPOSSIBLE',
    `spark.master is '${options.master}', and spark.reserve leaves ${reserveOf(options)} of its cores to queries: no worker can be placed. Give it more cores`,
  )
}

function refuseOld(version: string, remote: string): void {
  if (Number.parseInt(version, 10) >= OLDEST_SPARK) return
  throw new ManyworldsError(
    'SPARK_FAILED',
    `${remote.split('/;', 1)[0]} is Spark ${version}, and ${OLDEST_SPARK}.0 or newer is needed`,
  )
}
