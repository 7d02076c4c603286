import { BUNDLER_PEERS, requirePeers, SPARK_PEERS } from '../../optional-peers.ts'
import { isWorker } from '../../worker/role.ts'
import type { EngineEvents, Placement } from '../engine.ts'
import { LazyEngine, type LoadedEngine } from '../lazy-engine.ts'
import { parseRemote } from './connect/remote.ts'
import { checkNodeBinary } from './launcher.ts'
import type { SparkOptions } from './options.ts'
import { readOwnTls, readRemoteTls, remoteOf } from './remote.ts'
import { openServer, refuseSmallMaster } from './server.ts'

/**
 * Workers in the tasks of a Spark cluster.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'spark', spark: { remote: 'sc://spark.company:15002/;token=...' } })
 */
export class SparkRuntime extends LazyEngine {
  readonly name = 'spark'
  readonly #options: SparkOptions
  readonly #inLocal: boolean
  readonly #workerNum: number

  /** `workerNum`: the most workers that fit if `inLocal` starts a Spark for this engine. */
  constructor(options: SparkOptions = {}, inLocal = false, workerNum = 1) {
    super(inLocal ? workerNum : 1)
    this.#options = options
    this.#inLocal = inLocal
    this.#workerNum = workerNum
    checkOptions(options, inLocal)
    if (!isWorker) requirePeers('the Spark engine', [...BUNDLER_PEERS, ...SPARK_PEERS])
  }

  protected async load(placement: Placement, events: EngineEvents): Promise<LoadedEngine> {
    const [options, inLocal, workerNum] = [this.#options, this.#inLocal, this.#workerNum]
    // Before the first await: the first caller that opens the local Spark decides how many workers it has room for.
    const server = openServer(options, inLocal, workerNum, events.notice)
    server.catch(() => {})
    const { Slots } = await import('./slots.ts')
    return new Slots({ options, inLocal, workerNum, server }, placement, events)
  }
}

/** Throws for options that cannot work, before anything is started. */
function checkOptions(options: SparkOptions, inLocal: boolean): void {
  if (inLocal) refuseSmallMaster(options)
  else parseRemote(remoteOf(options))
  checkNodeBinary(options.nodeBinary ?? 'node')
  readOwnTls(options.tls)
  readRemoteTls(options.remoteTls)
}
