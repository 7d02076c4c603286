import type { ArgsOf, Spec } from '../command.ts'
import { nodeAccess } from './node-access.ts'

export const doctorSpec = {
  name: 'doctor',
  summary: 'Check this machine: what is there, what is missing, what to do',
  about: [
    'Looks for Node, npm, Python, uv and Java, for the environments of the Ray and Spark engines, and whether run files can be written here. The local engine needs only Node and a folder for its run files. The Ray engine needs uv or Python, and sets up the rest at its first use. So does the Spark engine with --in-local, which needs Java too; to use a Spark cluster, nothing else is needed here.',
    'With --nodes, or if MANYWORLDS_NODES names some, each node is asked too: whether it can be reached, takes the token, and has the same version. With --spark-remote, or if SPARK_REMOTE names it, the Connect server of a Spark cluster is asked: whether it can be reached and takes the token, its version, how many workers it has room for, and where its executors would call this machine.',
  ],
  positionals: {},
  options: {
    nodes: {
      type: 'text',
      value: 'A,B',
      description: 'the addresses of nodes to check; default: those that MANYWORLDS_NODES names',
    },
    sparkRemote: {
      type: 'text',
      value: 'REMOTE',
      description: 'the Connect server of a Spark cluster to check: sc://host:15002; default: what SPARK_REMOTE says',
      excludes: ['nodes'],
    },
    tokenFile: {
      ...nodeAccess.tokenFile,
      description: 'the token of the nodes, or of the cluster; default: the file that MANYWORLDS_TOKEN_FILE names',
    },
    tlsCa: nodeAccess.tlsCa,
    json: { type: 'flag', description: 'print one JSON object' },
  },
  examples: [
    { about: 'a table to read', line: 'manyworlds doctor' },
    { about: 'in CI, before anything else', line: 'manyworlds doctor --json' },
    {
      about: 'can these nodes be used from here?',
      line: 'manyworlds doctor --nodes worker1:5000,worker2:5000 --token-file token.txt',
    },
    {
      about: 'and this Spark cluster?',
      line: 'manyworlds doctor --spark-remote sc://spark:15002 --token-file token.txt',
    },
  ],
  exitCodes: {
    0: 'what the local engine needs is there, and what was named can be used',
    1: 'something that it needs is missing, or a node or the cluster cannot be used',
  },
} as const satisfies Spec

export type DoctorArgs = ArgsOf<typeof doctorSpec>
