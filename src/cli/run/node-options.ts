import type { NodesOptions } from '../../engines/nodes/options.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { wordList } from '../../text/word-list.ts'
import { NODES_VARIABLE, nodesOfEnvironment } from '../nodes/addresses.ts'
import type { RunArgs } from '../specs/run.ts'

type Given = Pick<RunArgs, 'engine' | 'nodes' | 'listen' | 'tokenFile' | 'tlsCa' | 'tlsCert' | 'tlsKey'>

/** The nodes of a run: what was typed over what the script gives; those of the environment where neither names any. */
export function nodesOf(given: Given, { engineName, nodes }: RunConfig): Pick<RunConfig, 'nodes'> {
  // What is wrong with it is said where configurations are checked.
  if (nodes !== undefined && (typeof nodes !== 'object' || nodes === null)) return {}
  if (engineName === 'ray' || engineName === 'spark') return {}
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
