import type { Option } from '../../cli/frame/command.ts'
import { NODES_VARIABLE, nodesOfEnvironment } from '../../cli/options/addresses.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { wordList } from '../../text/word-list.ts'
import type { EngineCli, TypedAccess } from '../definition.ts'
import { nodesDoctor } from './doctor-part.ts'
import type { NodesOptions } from './options.ts'

const options = {
  nodes: {
    type: 'text',
    value: 'A,B',
    description:
      'the addresses of nodes: worker1:5000, wss://worker2:5000; with --engine nodes, default: those that MANYWORLDS_NODES names',
  },
  listen: {
    type: 'text',
    value: 'HOST:PORT',
    description: 'let nodes join here while the run goes on, with "manyworlds node --connect"',
  },
} as const satisfies Readonly<Record<string, Option>>

export const nodesCli: EngineCli<typeof options> = {
  group: 'Nodes',
  options,
  configure: nodesOf,
  examples: {
    run: [
      {
        about: 'on two nodes, with the token that they were started with',
        line: 'manyworlds run agents.ts --nodes worker1:5000,worker2:5000 --token-file token.txt',
      },
    ],
  },
  doctor: nodesDoctor,
}

type Given = TypedAccess<typeof options>

/** The nodes of a run: typed options win over the script's. If neither names a node, those in the environment variable. */
export function nodesOf(given: Given, { engineName, nodes }: RunConfig): Pick<RunConfig, 'nodes'> {
  // A wrong value is reported where configurations are checked.
  if (engineName !== 'nodes' || (nodes !== undefined && (typeof nodes !== 'object' || nodes === null))) return {}
  const options = withTyped(given, nodes ?? {})
  const named = options.addresses !== undefined || options.listen !== undefined
  const around = nodesOfEnvironment()
  if (given.engine === 'nodes' && !named && around.length === 0)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `--engine nodes needs to know the nodes: --nodes worker1:5000,worker2:5000, or ${NODES_VARIABLE}, or --listen HOST:PORT for nodes that join`,
    )
  const all = named || around.length === 0 ? options : { ...options, addresses: around }
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
    // Drop the script's token if a file was typed: the token would win over the file.
    ...(tokenFile !== undefined ? { tokenFile } : token === undefined ? {} : { token }),
    ...(nodes === undefined ? {} : { addresses: wordList(nodes) }),
    ...(listen === undefined ? {} : { listen }),
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
  }
}
