import { userToken } from '../../network/token.ts'
import { BUNDLER_PEERS, requirePeers } from '../../optional-peers.ts'
import { isWorker } from '../../worker/role.ts'
import type { EngineEvents, Placement } from '../engine.ts'
import { LazyEngine, type LoadedEngine } from '../lazy-engine.ts'
import { type Credentials, readOptions } from './credentials.ts'
import type { NodesOptions } from './options.ts'

/**
 * Workers on your own machines, each of which runs `manyworlds node`.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'nodes', nodes: { addresses: ['worker1:5000', 'worker2:5000'], tokenFile: 'token' } })
 */
export class NodesRuntime extends LazyEngine {
  readonly name = 'nodes'
  readonly #credentials: Credentials

  constructor(options: NodesOptions = {}) {
    super()
    this.#credentials = readOptions(options)
    if (isWorker) return
    requirePeers('the nodes engine', BUNDLER_PEERS)
    // Fails before anything is sent. Without a token, all addresses are of this machine.
    if (this.#credentials.token === undefined) userToken()
  }

  protected async load(placement: Placement, events: EngineEvents): Promise<LoadedEngine> {
    const { Nodes } = await import('./nodes.ts')
    return new Nodes(this.#credentials, placement, events)
  }
}
