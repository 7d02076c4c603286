import type { ArgsOf, Spec } from '../../frame/command.ts'

const WAY = 'How driver and node find each other'
const SAFE = 'Who may use it'
const LIMITS = 'Limits'

export const nodeSpec = {
  name: 'node',
  summary: 'Make this machine a node: run workers here for drivers on other machines',
  about: [
    'A node runs tasks for scripts that use engineName "nodes". It gets the code of the agents from the driver.',
    'With --listen, drivers connect to it: "manyworlds run SCRIPT --nodes this-machine:5000", or nodes: { addresses: ["this-machine:5000"] } in the script. With --connect, it connects to a driver that listens ("manyworlds run SCRIPT --listen 0.0.0.0:7000", or nodes: { listen: "0.0.0.0:7000" }), and joins its run.',
    'SIGTERM or Ctrl-C stops it gracefully: it accepts no more tasks, and running tasks may finish. A second signal stops it at once.',
    '"manyworlds node token" prints a new token. "manyworlds nodes status" shows the state of nodes.',
    'Drivers share its workers, first come, first served; others wait until workers are free. Drivers beyond --max-drivers are rejected, and retry.',
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
      description: 'with --connect: how long to retry while the driver does not answer',
      group: WAY,
    },
    stay: {
      type: 'flag',
      description: 'with --connect: never give up, and wait for the next driver at that address',
      group: WAY,
      needs: 'connect',
    },
    tokenFile: {
      type: 'text',
      value: 'FILE',
      description:
        'the token that drivers must have, required if other machines can reach this node; default: the file that MANYWORLDS_TOKEN_FILE names, or your own token if only this machine can reach it',
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
      description: 'with --listen: accept only drivers with a certificate that this authority has signed',
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
      description: 'the most worker processes, for all drivers together; default: the number of cores',
      group: LIMITS,
    },
    workerMemory: { type: 'integer', value: 'MB', description: 'kill a worker that uses more memory', group: LIMITS },
    maxDrivers: {
      type: 'integer',
      value: 'N',
      default: '16',
      description: 'the most drivers at once; more are rejected',
      group: LIMITS,
    },
    maxConnections: {
      type: 'integer',
      value: 'N',
      default: '64',
      description: 'the most connections at once, including unauthenticated ones',
      group: LIMITS,
    },
    grace: {
      type: 'duration',
      value: 'DURATION',
      default: '30s',
      description: 'how long running tasks may continue after SIGTERM',
      group: LIMITS,
    },
    lease: {
      type: 'duration',
      value: 'DURATION',
      default: '15s',
      description: 'end the tasks of a driver that is unreachable for this long; at most 15s',
      group: LIMITS,
    },
    labels: { type: 'text', value: 'A,B', description: 'labels of this node, for tasks with requires: ["gpu"]' },
    passEnv: { type: 'text', value: 'A,B', description: 'environment variables of this process that workers also get' },
    packages: {
      type: 'text',
      value: 'DIR',
      description: 'where the packages of bundle.external are installed; default: the current folder',
      suggest: 'files',
    },
    cacheDir: {
      type: 'text',
      value: 'DIR',
      description: 'the cache for code from drivers; default: ~/.cache/manyworlds/bundles',
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
      about: 'join a run in progress',
      line: 'manyworlds node --connect wss://driver:7000 --token-file token.txt',
    },
  ],
  exitCodes: {
    0: 'it was stopped, or the driver that it joined has finished',
    1: 'it could not listen, or could not join',
  },
} as const satisfies Spec

export type NodeArgs = ArgsOf<typeof nodeSpec>
