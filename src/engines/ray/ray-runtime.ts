import type { BlobContent, CodeBundle, EngineEvents, Placement, RuntimeEngine } from '../engine.ts'
import type { Cluster } from './cluster.ts'
import type { RayOptions } from './options.ts'

/**
 * Workers in actors of a Ray cluster. What it takes to talk to Ray, Python included, is set up when it is first used.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'ray', ray: { address: 'auto' }, workerNum: 8 })
 */
export class RayRuntime implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'ray'
  readonly #options: RayOptions
  readonly #inLocal: boolean
  readonly #started: PromiseWithResolvers<Cluster> = Promise.withResolvers()
  #cluster: Cluster | undefined
  #wanted: number | undefined
  #alive = true
  #stopped = false

  constructor(options: RayOptions = {}, inLocal = false) {
    this.#options = options
    this.#inLocal = inLocal
    this.#started.promise.catch(() => {})
  }

  get maxWorkers(): number {
    return this.#cluster?.maxWorkers ?? 1
  }

  get elastic(): boolean {
    return this.#cluster === undefined || this.#options.autoscaling === true
  }

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    try {
      const { Cluster } = await import('./cluster.ts')
      const cluster = new Cluster(this.#options, this.#inLocal, placement, events)
      if (this.#stopped) return
      this.#cluster = cluster
      cluster.keepAlive(this.#alive)
      signal.addEventListener('abort', () => void this.stop(), { once: true })
      if (this.#wanted !== undefined) cluster.scale(this.#wanted)
      await cluster.start()
      this.#started.resolve(cluster)
    } catch (error) {
      this.#started.reject(error)
      throw error
    }
  }

  async scale(workers: number): Promise<void> {
    this.#wanted = workers
    this.#cluster?.scale(workers)
  }

  /** May be called before the cluster is there: code is made ready while it starts. */
  async publish(bundle: CodeBundle): Promise<void> {
    const cluster = await this.#started.promise
    await cluster.publish(bundle)
  }

  async putBlob(blob: BlobContent): Promise<void> {
    const cluster = await this.#started.promise
    await cluster.putBlob(blob)
  }

  async dropBlob(sha256: string): Promise<void> {
    const cluster = await this.#started.promise
    cluster.dropBlob(sha256)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#cluster?.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#cluster?.stop()
  }
}
