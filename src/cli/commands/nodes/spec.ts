import type { ArgsOf, Spec } from '../../frame/command.ts'
import { nodesOfEnvironment } from '../../options/addresses.ts'
import { nodeAccess } from '../../options/node-access.ts'

export const nodesSpec = {
  name: 'nodes',
  summary: 'Show the state of nodes: workers, tasks, drivers, load',
  about: [
    'Asks all nodes at the same time, and prints a row for each node and each of its drivers. If a node cannot be used, its row has the reason.',
    '"manyworlds node" starts a node. Workers report their number of tasks once a second.',
  ],
  positionals: {
    action: { value: 'ACTION', description: 'status: show the state of nodes', choices: ['status'] },
    addresses: {
      value: 'ADDRESS',
      description: 'worker1:5000, wss://worker2:5000; several, or A,B; default: those that MANYWORLDS_NODES names',
      many: true,
      optional: true,
      suggest: async () => nodesOfEnvironment(),
    },
  },
  options: {
    tokenFile: nodeAccess.tokenFile,
    tls: { type: 'flag', description: 'use TLS, as for addresses that begin with wss://' },
    tlsCa: nodeAccess.tlsCa,
    tlsCert: nodeAccess.tlsCert,
    tlsKey: nodeAccess.tlsKey,
    serverName: {
      type: 'text',
      value: 'NAME',
      description: 'the name in the certificate of the nodes, if it differs from the name in their address',
    },
    watch: { type: 'duration', value: 'DURATION', description: 'repeat at this interval, such as 2s, until Ctrl-C' },
    json: { type: 'flag', description: 'print one JSON array' },
  },
  examples: [
    { about: 'two nodes', line: 'manyworlds nodes status worker1:5000 worker2:5000 --token-file token.txt' },
    { about: 'the nodes of MANYWORLDS_NODES, every two seconds', line: 'manyworlds nodes status --watch 2s' },
    {
      about: 'the nodes without tasks',
      line: `manyworlds nodes status --json | jq -r '.[] | select(.tasks == 0).address'`,
    },
  ],
  exitCodes: {
    0: 'all nodes answered',
    1: 'some nodes did not answer, or refused the connection',
    130: 'interrupted with Ctrl-C',
  },
} as const satisfies Spec

export type NodesArgs = ArgsOf<typeof nodesSpec>
