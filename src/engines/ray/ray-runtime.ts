import { BUNDLER_PEERS, requirePeers } from '../../optional-peers.ts'
import { isWorker } from '../../worker/role.ts'
import type { EngineEvents, Placement } from '../engine.ts'
import { LazyEngine, type LoadedEngine } from '../lazy-engine.ts'
import type { RayOptions } from './options.ts'

/**
 * Workers in actors of a Ray cluster. The Python environment that talks to Ray is set up when the engine first starts.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'ray', ray: { address: 'auto' }, workerNum: 8 })
 */
export class RayRuntime extends LazyEngine {
  readonly name = 'ray'
  readonly #options: RayOptions
  readonly #inLocal: boolean

  constructor(options: RayOptions = {}, inLocal = false) {
    super()
    this.#options = options
    this.#inLocal = inLocal
    if (!isWorker) requirePeers('the Ray engine', BUNDLER_PEERS)
  }

  protected async load(placement: Placement, events: EngineEvents): Promise<LoadedEngine> {
    const { Cluster } = await import('./cluster.ts')
    return new Cluster(this.#options, this.#inLocal, placement, events)
  }
}
