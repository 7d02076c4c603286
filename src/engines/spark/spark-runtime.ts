import type { BlobContent, CodeBundle, EngineEvents, Placement, RuntimeEngine } from '../engine.ts'
import { parseRemote } from './connect/remote.ts'
import { checkNodeBinary } from './launcher.ts'
import type { SparkOptions } from './options.ts'
import { readOwnTls, readRemoteTls, remoteOf } from './remote.ts'
import { openServer, refuseSmallMaster } from './server.ts'
import type { Slots } from './slots.ts'

/**
 * Workers in the tasks of a Spark cluster. What it takes to talk to Spark is loaded when the engine is started.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'spark', spark: { remote: 'sc://spark.company:15002/;token=...' } })
 */
export class SparkRuntime implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'spark'
  readonly #options: SparkOptions
  readonly #inLocal: boolean
  readonly #workerNum: number
  readonly #started: PromiseWithResolvers<Slots> = Promise.withResolvers()
  #slots: Slots | undefined
  #wanted: number | undefined
  #alive = true
  #stopped = false

  /** `workerNum`: the most workers that a Spark of one's own (`inLocal`) has room for. */
  constructor(options: SparkOptions = {}, inLocal = false, workerNum = 1) {
    this.#options = options
    this.#inLocal = inLocal
    this.#workerNum = workerNum
    checkOptions(options, inLocal)
    this.#started.promise.catch(() => {})
  }

  get maxWorkers(): number {
    return this.#slots?.maxWorkers ?? (this.#inLocal ? this.#workerNum : 1)
  }

  get elastic(): boolean {
    return this.#slots?.elastic ?? true
  }

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    // At once, before anybody else can ask for the same Spark: the number of workers decides how large it is.
    const server = openServer(this.#options, this.#inLocal, this.#workerNum, events.notice)
    server.catch(() => {})
    try {
      const { Slots } = await import('./slots.ts')
      const wants = { options: this.#options, inLocal: this.#inLocal, workerNum: this.#workerNum, server }
      const slots = new Slots(wants, placement, events)
      this.#slots = slots
      if (this.#stopped) return await slots.stop()
      slots.keepAlive(this.#alive)
      signal.addEventListener('abort', () => void this.stop(), { once: true })
      if (this.#wanted !== undefined) slots.scale(this.#wanted)
      await slots.start()
      this.#started.resolve(slots)
    } catch (error) {
      this.#started.reject(error)
      throw error
    }
  }

  async scale(workers: number): Promise<void> {
    this.#wanted = workers
    this.#slots?.scale(workers)
  }

  /** May be called before Spark is there: code is made ready while it starts. */
  async publish(bundle: CodeBundle): Promise<void> {
    const slots = await this.#started.promise
    await slots.publish(bundle)
  }

  async putBlob(blob: BlobContent): Promise<void> {
    const slots = await this.#started.promise
    await slots.putBlob(blob)
  }

  async dropBlob(sha256: string): Promise<void> {
    const slots = await this.#started.promise
    await slots.dropBlob(sha256)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#slots?.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#slots?.stop()
  }
}

/** One clear error for what cannot work, before anything is started. */
function checkOptions(options: SparkOptions, inLocal: boolean): void {
  if (inLocal) refuseSmallMaster(options)
  else parseRemote(remoteOf(options))
  checkNodeBinary(options.nodeBinary ?? 'node')
  readOwnTls(options.tls)
  readRemoteTls(options.remoteTls)
}
