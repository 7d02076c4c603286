import { engineParts } from '../../engines/all-parts.ts'
import { EngineName } from '../../run-config.ts'
import type { Option } from '../frame/command.ts'
import { engineOptions } from './engine-options.ts'
import { nodeAccess } from './node-access.ts'

const PLACE = 'Where and how many'
const ACCESS = 'Authentication by nodes or a cluster'

const startsLocally = engineParts.filter((engine) => engine.startsLocally).map(({ name }) => name)

/** Options for the place and number of workers, for all commands that run a script. */
export const placeOptions = {
  engine: {
    type: 'choice',
    choices: Object.values(EngineName),
    value: 'NAME',
    description: `where the workers are: ${engineParts.map(({ where }) => where).join('; ')}`,
    group: PLACE,
  },
  workers: { type: 'integer', short: 'w', value: 'N', description: 'the most worker processes', group: PLACE },
  concurrency: {
    type: 'integer',
    short: 'c',
    value: 'N',
    description: 'how many tasks each worker runs at once',
    group: PLACE,
  },
  inLocal: {
    type: 'flag',
    description: `with --engine ${startsLocally.join(' or ')}: start a cluster on this machine for this run`,
    group: PLACE,
  },
  env: {
    type: 'text',
    many: true,
    value: 'NAME',
    description:
      'give the workers this environment variable, with its value in this process; NAME=VALUE: with this value, which every user of this machine can see',
    group: PLACE,
  },
  ...engineOptions,
  tokenFile: {
    ...nodeAccess.tokenFile,
    description:
      'the token of the nodes, or of the cluster; default: the file that MANYWORLDS_TOKEN_FILE or RAY_AUTH_TOKEN_PATH names',
    group: ACCESS,
  },
  tlsCa: { ...nodeAccess.tlsCa, group: ACCESS },
  tlsCert: {
    ...nodeAccess.tlsCert,
    description: 'our own certificate, PEM: for --listen, and for nodes and Connect servers that require one',
    group: ACCESS,
  },
  tlsKey: { ...nodeAccess.tlsKey, group: ACCESS },
} as const satisfies Readonly<Record<string, Option>>
