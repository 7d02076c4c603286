import type { NodesOptions } from '../engines/nodes/options.ts'
import { ManyworldsError } from '../errors.ts'
import { DistributedExecutor, type ExecutorConfig } from './executor.ts'

/** A RunConfig for executors on nodes. */
export interface RemoteNodeExecutorConfig
  extends Omit<ExecutorConfig, 'engineName' | 'nodes' | 'cls' | 'inLocal'>,
    Omit<NodesOptions, 'addresses'> {
  /** Where `manyworlds node --listen` runs. */
  readonly nodes: readonly string[]
}

/**
 * The executor on your own machines. Each task goes to the least loaded worker of all nodes, relative to its speed.
 *
 * @example
 * await using executor = new RemoteNodeExecutor({ nodes: ['worker1.cluster:5000', 'worker2.cluster:5000'], tokenFile: 'token.txt' })
 * executor.submitTask(shout.task('hello'))
 * const done = await executor.collectResults()
 */
export class RemoteNodeExecutor extends DistributedExecutor {
  constructor(config: RemoteNodeExecutorConfig) {
    if (typeof config !== 'object' || config === null || !Array.isArray(config.nodes))
      throw new ManyworldsError(
        'CONFIG_INVALID',
        "give the addresses of the nodes: new RemoteNodeExecutor({ nodes: ['worker1.cluster:5000'] })",
      )
    const { nodes: addresses, token, tokenFile, tls, listen, waitMs, ...rest } = config
    const options = { token, tokenFile, tls, listen, waitMs }
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
    super({ ...rest, engineName: 'nodes', nodes: { addresses, ...given } })
  }
}
