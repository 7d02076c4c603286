import type { ArgsOf, Spec } from '../../frame/command.ts'
import { nodesOfEnvironment } from '../../options/addresses.ts'
import { nodeAccess } from '../../options/node-access.ts'

export const nodesSpec = {
  name: 'nodes',
  summary: 'Ask nodes how they are: workers, tasks, drivers, load',
  about: [
    'Asks each node, all at the same time, and prints a row for each and one for each of its drivers. A node that cannot be used has its reason in its row.',
    'Nodes are made with "manyworlds node". The number of tasks is told by the workers, once a second.',
  ],
  positionals: {
    action: { value: 'ACTION', description: 'status: how they are', choices: ['status'] },
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
      description: 'the name in the certificate of the nodes, where it is not the one in their address',
    },
    watch: { type: 'duration', value: 'DURATION', description: 'ask again every so often, until Ctrl-C: 2s' },
    json: { type: 'flag', description: 'print one JSON array' },
  },
  examples: [
    { about: 'two nodes', line: 'manyworlds nodes status worker1:5000 worker2:5000 --token-file token.txt' },
    { about: 'those that MANYWORLDS_NODES names, again and again', line: 'manyworlds nodes status --watch 2s' },
    {
      about: 'which have nothing to do',
      line: `manyworlds nodes status --json | jq -r '.[] | select(.tasks == 0).address'`,
    },
  ],
  exitCodes: { 0: 'all nodes answered', 1: 'some did not, or did not let us in', 130: 'interrupted with Ctrl-C' },
} as const satisfies Spec

export type NodesArgs = ArgsOf<typeof nodesSpec>
