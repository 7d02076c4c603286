import type { BlobContent, CodeBundle, EngineEvents, Placement, RuntimeEngine } from '../engine.ts'
import { type Credentials, readOptions } from './credentials.ts'
import type { Nodes } from './nodes.ts'
import type { NodesOptions } from './options.ts'

/**
 * Workers on machines of your own, each of which runs `manyworlds node`. What it takes to talk to them is loaded when the
 * engine is started.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'nodes', nodes: { addresses: ['worker1:5000', 'worker2:5000'], tokenFile: 'token' } })
 */
export class NodesRuntime implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'nodes'
  readonly #credentials: Credentials
  readonly #made: PromiseWithResolvers<Nodes> = Promise.withResolvers()
  #nodes: Nodes | undefined
  #alive = true
  #wanted: number | undefined
  #stopped = false

  constructor(options: NodesOptions = {}) {
    this.#credentials = readOptions(options)
  }

  get maxWorkers(): number {
    return this.#nodes?.maxWorkers ?? 1
  }

  get elastic(): boolean {
    return this.#nodes?.elastic ?? true
  }

  offers(labels: readonly string[]): boolean {
    return this.#nodes?.offers(labels) ?? false
  }

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    const { Nodes } = await import('./nodes.ts')
    const nodes = new Nodes(this.#credentials, placement, events)
    if (this.#stopped) return nodes.stop()
    this.#nodes = nodes
    this.#made.resolve(nodes)
    nodes.keepAlive(this.#alive)
    signal.addEventListener('abort', () => void this.stop(), { once: true })
    if (this.#wanted !== undefined) nodes.scale(this.#wanted)
    await nodes.start()
  }

  async scale(workers: number): Promise<void> {
    this.#wanted = workers
    this.#nodes?.scale(workers)
  }

  /** May be called before the engine is there: code is made ready while it starts. */
  async publish(bundle: CodeBundle): Promise<void> {
    const nodes = await this.#made.promise
    await nodes.publish(bundle)
  }

  async putBlob(blob: BlobContent): Promise<void> {
    const nodes = await this.#made.promise
    await nodes.putBlob(blob)
  }

  async dropBlob(sha256: string): Promise<void> {
    await this.#nodes?.dropBlob(sha256)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#nodes?.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#nodes?.stop()
  }
}
