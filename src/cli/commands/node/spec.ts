import type { ArgsOf, Spec } from '../../frame/command.ts'

const WAY = 'How driver and node find each other'
const SAFE = 'Who may use it'
const LIMITS = 'Limits'

export const nodeSpec = {
  name: 'node',
  summary: 'Make this machine a node: run workers here for drivers elsewhere',
  about: [
    'A node runs tasks for scripts that use engineName "nodes". It gets its code from the driver and needs none of its own.',
    'With --listen, drivers call it: "manyworlds run SCRIPT --nodes this-machine:5000", or nodes: { addresses: ["this-machine:5000"] } in the script. With --connect, it calls a driver that listens, "manyworlds run SCRIPT --listen 0.0.0.0:7000" or nodes: { listen: "0.0.0.0:7000" }, and joins its run.',
    'SIGTERM or Ctrl-C stop it gracefully: it accepts no more tasks, and running tasks may finish. A second one stops it at once.',
    '"manyworlds node token" prints a new token. "manyworlds nodes status" asks nodes how they are.',
    'Drivers share its workers: who comes first is served first, others wait until some are free. Beyond --max-drivers they are sent away, and try again.',
  ],
  positionals: {
    action: {
      value: 'ACTION',
      description: 'token: print a new token, and do nothing else',
      optional: true,
      choices: ['token'],
    },
  },
  options: {
    listen: {
      type: 'text',
      value: 'HOST:PORT',
      description: 'wait for drivers here: 127.0.0.1:5000, 0.0.0.0:5000',
      group: WAY,
      excludes: ['connect'],
    },
    connect: {
      type: 'text',
      value: 'URL',
      description: 'join the driver that listens there: wss://driver:7000',
      group: WAY,
    },
    giveUp: {
      type: 'duration',
      value: 'DURATION',
      default: '10m',
      description: 'with --connect: how long to go on calling a driver that does not answer',
      group: WAY,
    },
    stay: {
      type: 'flag',
      description: 'with --connect: go on for ever, for the next driver at that address',
      group: WAY,
      needs: 'connect',
    },
    tokenFile: {
      type: 'text',
      value: 'FILE',
      description:
        'the token that drivers must have, needed wherever other machines can reach this node; default: the file that MANYWORLDS_TOKEN_FILE names; on this machine alone, your own token',
      group: SAFE,
      suggest: 'files',
    },
    out: {
      type: 'text',
      value: 'FILE',
      description: 'with token: write it to a new file that only you can read',
      group: SAFE,
      suggest: 'files',
    },
    tlsCert: {
      type: 'text',
      value: 'FILE',
      description: 'the certificate of this node, PEM; with --listen, its address is then wss://',
      group: SAFE,
      suggest: 'files',
      needs: 'tlsKey',
    },
    tlsKey: { type: 'text', value: 'FILE', description: 'its key', group: SAFE, suggest: 'files', needs: 'tlsCert' },
    clientCa: {
      type: 'text',
      value: 'FILE',
      description: 'with --listen: only drivers with a certificate that this authority has signed',
      group: SAFE,
      suggest: 'files',
      needs: 'tlsCert',
    },
    tlsCa: {
      type: 'text',
      value: 'FILE',
      description: 'with --connect: the authority that signed the certificate of the driver',
      group: SAFE,
      suggest: 'files',
      needs: 'connect',
    },
    workers: {
      type: 'integer',
      short: 'w',
      value: 'N',
      description: 'the most worker processes, for all drivers together; default: the cores of this machine',
      group: LIMITS,
    },
    workerMemory: { type: 'integer', value: 'MB', description: 'end a worker that uses more', group: LIMITS },
    maxDrivers: {
      type: 'integer',
      value: 'N',
      default: '16',
      description: 'drivers at once, more are sent away',
      group: LIMITS,
    },
    maxConnections: {
      type: 'integer',
      value: 'N',
      default: '64',
      description: 'connections at once, those of strangers included',
      group: LIMITS,
    },
    grace: {
      type: 'duration',
      value: 'DURATION',
      default: '30s',
      description: 'how long running tasks may still take after SIGTERM',
      group: LIMITS,
    },
    lease: {
      type: 'duration',
      value: 'DURATION',
      default: '15s',
      description: 'end the tasks of a driver that cannot be heard for so long; at most 15s',
      group: LIMITS,
    },
    labels: { type: 'text', value: 'A,B', description: 'what this node has, for tasks with requires: ["gpu"]' },
    passEnv: { type: 'text', value: 'A,B', description: 'variables of this process that its workers get too' },
    packages: {
      type: 'text',
      value: 'DIR',
      description: 'where the packages of bundle.external are installed; default: the current folder',
      suggest: 'files',
    },
    cacheDir: {
      type: 'text',
      value: 'DIR',
      description: 'where code from drivers is kept; default: ~/.cache/manyworlds/bundles',
      suggest: 'files',
    },
  },
  examples: [
    { about: 'try it on one machine', line: 'manyworlds node --listen 127.0.0.1:5000' },
    { about: 'a token that only you can read', line: 'manyworlds node token --out token.txt' },
    {
      about: 'for a team',
      line: 'manyworlds node --listen 0.0.0.0:5000 --token-file token.txt --tls-cert node.crt --tls-key node.key',
    },
    {
      about: 'join a run that is going on',
      line: 'manyworlds node --connect wss://driver:7000 --token-file token.txt',
    },
  ],
  exitCodes: { 0: 'it was stopped, or the driver that it had joined is done', 1: 'it could not listen, or not join' },
} as const satisfies Spec

export type NodeArgs = ArgsOf<typeof nodeSpec>
