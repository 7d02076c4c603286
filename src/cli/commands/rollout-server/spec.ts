import type { ArgsOf, Spec } from '../../frame/command.ts'
import { modelOptions } from '../../options/model-options.ts'
import { placeOptions } from '../../options/place-options.ts'
import { scriptOptions } from '../../options/script-options.ts'

const SERVER = 'The server'
const MODELS = 'Language models'
const LIMITS = 'Limits'
const RECORD = 'The runs and their store'
const ACCESS = 'Authentication by nodes or a cluster'

// The plain names are those of the server's own options.
const { tokenFile, tlsCa, tlsCert, tlsKey, ...place } = placeOptions

export const rolloutServerSpec = {
  name: 'rollout-server',
  summary: 'Run groups of rollouts for another trainer, over HTTP',
  about: [
    'FILE exports an agent (as default, as "agent", or as its only agent), and optionally "config", a RunConfig. It must not make runs when it is imported. A trainer sends tasks to POST /v1/rollouts, and gets rows of tokens with log-probabilities, masks and rewards. The agent calls the model that the request names, on the server of the trainer.',
    'Each request is a run in the store. If a caller disconnects, its rollouts are cancelled. Ctrl-C once: no more requests are accepted, and running rollouts may finish. Ctrl-C twice: it stops at once.',
    'The folder python/hooks of this package has code that calls it from TRL and verl.',
  ],
  positionals: {
    script: { value: 'FILE', description: 'a TypeScript or JavaScript file that exports an agent', suggest: 'files' },
    scriptArgs: {
      value: 'ARG',
      description: 'arguments for the file, in process.argv',
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
      description: 'the address to listen on; beyond this machine, a token file and TLS are required',
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
        'the token that callers must send; default: the file that MANYWORLDS_TOKEN_FILE names, or your own token if only this machine can reach it',
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
      description: 'accept only callers with a certificate that this authority has signed',
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
      description: 'the most requests at once; more get HTTP 503',
      group: SERVER,
    },
    maxRollouts: {
      type: 'integer',
      value: 'N',
      default: '32768',
      description: 'the most rollouts of all requests at once',
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
