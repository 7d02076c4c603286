import type { NodesOptions } from '../../engines/nodes/options.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { wordList } from '../../text/word-list.ts'
import { NODES_VARIABLE, nodesOfEnvironment } from '../nodes/addresses.ts'
import type { RunArgs } from '../specs/run.ts'
import { UsageError } from '../usage-error.ts'

type Given = Pick<RunArgs, 'engine' | 'nodes' | 'listen' | 'rayAddress' | 'tokenFile' | 'tlsCa' | 'tlsCert' | 'tlsKey'>

/** The engine that was asked for: who names nodes, or a cluster, wants to use them. */
export function engineOf({ engine, nodes, listen, rayAddress }: Given): RunArgs['engine'] {
  if (rayAddress !== undefined) {
    if (engine !== undefined && engine !== 'ray') throw new UsageError('--ray-address is only of use with --engine ray')
    return 'ray'
  }
  if (nodes === undefined && listen === undefined) return engine
  if (engine !== undefined && engine !== 'nodes')
    throw new UsageError(`${nodes === undefined ? '--listen' : '--nodes'} is only of use with --engine nodes`)
  return 'nodes'
}

/** The nodes of a run: what was typed over what the script gives; those of the environment where neither names any. */
export function nodesOf(given: Given, { engineName, nodes }: RunConfig): Pick<RunConfig, 'nodes'> {
  // What is wrong with it is said where configurations are checked.
  if (nodes !== undefined && (typeof nodes !== 'object' || nodes === null)) return {}
  if (engineName === 'ray') return {}
  const options = withTyped(given, nodes ?? {})
  const named = options.addresses !== undefined || options.listen !== undefined
  const around = nodesOfEnvironment()
  if (given.engine === 'nodes' && !named && around.length === 0)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `--engine nodes needs to know the nodes: --nodes worker1:5000,worker2:5000, or ${NODES_VARIABLE}, or --listen HOST:PORT for nodes that join`,
    )
  const all = engineName !== 'nodes' || named || around.length === 0 ? options : { ...options, addresses: around }
  return Object.keys(all).length === 0 ? {} : { nodes: all }
}

function withTyped({ nodes, listen, tokenFile, tlsCa, tlsCert, tlsKey }: Given, script: NodesOptions): NodesOptions {
  const { token, ...others } = script
  const tls = {
    ...(script.tls === true ? {} : script.tls),
    ...(tlsCa === undefined ? {} : { ca: tlsCa }),
    ...(tlsCert === undefined || tlsKey === undefined ? {} : { cert: tlsCert, key: tlsKey }),
  }
  return {
    ...others,
    // A token of the script would go before the file that was typed.
    ...(tokenFile !== undefined ? { tokenFile } : token === undefined ? {} : { token }),
    ...(nodes === undefined ? {} : { addresses: wordList(nodes) }),
    ...(listen === undefined ? {} : { listen }),
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
  }
}
