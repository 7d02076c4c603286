import type { ArgsOf, Spec } from '../../frame/command.ts'
import { modelOptions } from '../../options/model-options.ts'
import { placeOptions } from '../../options/place-options.ts'
import { scriptOptions } from '../../options/script-options.ts'

const SERVER = 'The server'
const MODELS = 'Language models'
const LIMITS = 'Limits'
const RECORD = 'The runs and their store'
const ACCESS = 'To be let in by nodes or a cluster'

// Here the plain names are the server's own.
const { tokenFile, tlsCa, tlsCert, tlsKey, ...place } = placeOptions

export const rolloutServerSpec = {
  name: 'rollout-server',
  summary: 'Run groups of rollouts for a trainer elsewhere, over HTTP',
  about: [
    'FILE exports an agent (as default, as "agent", or as its only one), and optionally "config", a RunConfig. A trainer sends tasks to POST /v1/rollouts, and gets back rows of tokens with log-probabilities, masks and rewards. The agent calls the model that the request names: the server of the trainer.',
    'Each request is a run of the store. A request that goes away cancels its rollouts. Ctrl-C once takes no more requests, and lets running rollouts finish; Ctrl-C twice stops at once.',
    'python/hooks of this package has files that call it from TRL and verl.',
  ],
  positionals: {
    script: { value: 'FILE', description: 'a TypeScript or JavaScript file that exports an agent', suggest: 'files' },
    scriptArgs: {
      value: 'ARG',
      description: 'for the file, which finds them in process.argv',
      afterDashes: true,
      suggest: 'files',
    },
  },
  options: {
    agent: {
      type: 'text',
      value: 'NAME',
      description: 'the agent with this name, if the file exports several',
      group: SERVER,
    },
    host: {
      type: 'text',
      value: 'HOST',
      default: '127.0.0.1',
      description: 'the address to listen on; beyond this machine, TLS is needed',
      group: SERVER,
    },
    port: {
      type: 'integer',
      min: 0,
      value: 'PORT',
      default: '8700',
      description: 'the port to listen on; 0: a free one',
      group: SERVER,
    },
    tokenFile: {
      type: 'text',
      value: 'FILE',
      description:
        'the token that callers must have; default: the file that MANYWORLDS_TOKEN_FILE names; on this machine alone, your own token',
      group: SERVER,
      suggest: 'files',
    },
    tlsCert: {
      type: 'text',
      value: 'FILE',
      description: 'the certificate of this server, PEM; its address is then https://',
      group: SERVER,
      suggest: 'files',
      needs: 'tlsKey',
    },
    tlsKey: { type: 'text', value: 'FILE', description: 'its key', group: SERVER, suggest: 'files', needs: 'tlsCert' },
    clientCa: {
      type: 'text',
      value: 'FILE',
      description: 'only callers with a certificate that this authority has signed',
      group: SERVER,
      suggest: 'files',
      needs: 'tlsCert',
    },
    maxBody: {
      type: 'integer',
      value: 'MB',
      default: '64',
      description: 'the largest request, in megabytes',
      group: SERVER,
    },
    maxRequests: {
      type: 'integer',
      value: 'N',
      default: '64',
      description: 'requests at once, more are sent away',
      group: SERVER,
    },
    ...place,
    engineTokenFile: { ...tokenFile, group: ACCESS },
    engineTlsCa: { ...tlsCa, group: ACCESS },
    engineTlsCert: { ...tlsCert, needs: 'engineTlsKey', group: ACCESS },
    engineTlsKey: { ...tlsKey, needs: 'engineTlsCert', group: ACCESS },
    model: { ...modelOptions.model, group: MODELS },
    models: { ...modelOptions.models, group: MODELS },
    timeout: { ...scriptOptions.timeout, group: LIMITS },
    maxAttempts: { ...scriptOptions.maxAttempts, group: LIMITS },
    grace: { ...scriptOptions.grace, group: LIMITS },
    store: { ...scriptOptions.store, group: RECORD },
    noStore: { type: 'flag', description: 'store nothing', group: RECORD },
    durability: { ...scriptOptions.durability, group: RECORD },
    showLogs: { ...scriptOptions.showLogs },
    quiet: { type: 'flag', short: 'q', description: 'print nothing about requests' },
  },
  examples: [
    { about: 'for a trainer on this machine', line: 'manyworlds rollout-server solver.ts' },
    {
      about: 'for a trainer on another machine, with workers on two nodes',
      line: 'manyworlds rollout-server solver.ts --host 0.0.0.0 --token-file token.txt --tls-cert cert.pem --tls-key key.pem --nodes worker1:5000,worker2:5000 --engine-token-file nodes.txt',
    },
  ],
  exitCodes: {
    0: 'it was stopped',
    1: 'it could not listen, or the file could not be loaded',
    130: 'stopped at once, with Ctrl-C twice',
  },
} as const satisfies Spec

export type RolloutServerArgs = ArgsOf<typeof rolloutServerSpec>
