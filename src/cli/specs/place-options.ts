import { EngineName } from '../../run-config.ts'
import type { Option } from '../command.ts'
import { nodeAccess } from './node-access.ts'

const PLACE = 'Where and how many'
const NODES = 'Nodes'
const RAY = 'Ray'
const SPARK = 'Spark'
const ACCESS = 'To be let in by nodes or a cluster'

/** Where the workers of a script are: for all commands that run one. */
export const placeOptions = {
  engine: {
    type: 'choice',
    choices: Object.values(EngineName),
    value: 'NAME',
    description: 'where the workers are: on this machine, on nodes, on a Ray cluster, or on a Spark cluster',
    group: PLACE,
  },
  workers: { type: 'integer', short: 'w', value: 'N', description: 'at most so many worker processes', group: PLACE },
  concurrency: { type: 'integer', short: 'c', value: 'N', description: 'tasks at once in each worker', group: PLACE },
  inLocal: {
    type: 'flag',
    description: 'with --engine ray or spark: start one on this machine, for this run',
    group: PLACE,
  },
  nodes: {
    type: 'text',
    value: 'A,B',
    description:
      'the addresses of nodes: worker1:5000, wss://worker2:5000; with --engine nodes, default: those that MANYWORLDS_NODES names',
    group: NODES,
  },
  listen: {
    type: 'text',
    value: 'HOST:PORT',
    description: 'let nodes join here while the run goes on, with "manyworlds node --connect"',
    group: NODES,
  },
  rayAddress: {
    type: 'text',
    value: 'ADDRESS',
    description: 'the Ray cluster: head:6379, ray://head:10001, or auto; asks for --engine ray',
    group: RAY,
    excludes: ['inLocal', 'nodes', 'listen'],
  },
  sparkRemote: {
    type: 'text',
    value: 'REMOTE',
    description:
      'the Connect server of the Spark cluster: sc://host:15002; asks for --engine spark; default with that: what SPARK_REMOTE says',
    group: SPARK,
    excludes: ['inLocal', 'nodes', 'listen', 'rayAddress'],
  },
  sparkMaster: {
    type: 'text',
    value: 'MASTER',
    description:
      'with --in-local: what the Spark that is started here runs on: local[4], spark://host:7077; asks for --engine spark',
    group: SPARK,
    needs: 'inLocal',
    excludes: ['nodes', 'listen'],
  },
  advertiseHost: {
    type: 'text',
    value: 'HOST',
    description:
      'with --engine spark: the name or address under which executors reach this machine; default: the one that it calls the cluster from',
    group: SPARK,
    excludes: ['nodes', 'listen', 'rayAddress'],
  },
  tokenFile: {
    ...nodeAccess.tokenFile,
    description:
      'the token of the nodes, or of the cluster; default: the file that MANYWORLDS_TOKEN_FILE or RAY_AUTH_TOKEN_PATH names',
    group: ACCESS,
  },
  tlsCa: { ...nodeAccess.tlsCa, group: ACCESS },
  tlsCert: {
    ...nodeAccess.tlsCert,
    description: 'our own certificate, PEM: for --listen, and for nodes and Connect servers that ask for one',
    group: ACCESS,
  },
  tlsKey: { ...nodeAccess.tlsKey, group: ACCESS },
} as const satisfies Readonly<Record<string, Option>>
