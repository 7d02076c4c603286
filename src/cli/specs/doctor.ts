import type { ArgsOf, Spec } from '../command.ts'
import { nodeAccess } from './node-access.ts'

export const doctorSpec = {
  name: 'doctor',
  summary: 'Check this machine: what is there, what is missing, what to do',
  about: [
    'Looks for Node, npm, Python, uv, Java and Spark, for the environment of the Ray engine, and whether run files can be written here. The local engine needs only Node and a folder for its run files. The Ray engine needs uv or Python, and sets up the rest at its first use; Java and Spark are for an engine to come.',
    'With --nodes, or if MANYWORLDS_NODES names some, each node is asked too: whether it can be reached, takes the token, and has the same version.',
  ],
  positionals: {},
  options: {
    nodes: {
      type: 'text',
      value: 'A,B',
      description: 'the addresses of nodes to check; default: those that MANYWORLDS_NODES names',
    },
    tokenFile: nodeAccess.tokenFile,
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
  ],
  exitCodes: {
    0: 'what the local engine needs is there, and the nodes can be used',
    1: 'something that it needs is missing, or a node cannot be used',
  },
} as const satisfies Spec

export type DoctorArgs = ArgsOf<typeof doctorSpec>
