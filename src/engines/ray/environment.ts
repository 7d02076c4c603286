import { keptBytecode } from '../../python/bytecode.ts'
import type { Needs } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'
import type { RayOptions } from './options.ts'

/** What is installed where the cluster does not say otherwise. */
export const RAY_VERSION = '2.60.0'
const PYTHON = '3.11'

export const needsOf = (version: string): Needs => ({
  title: `Ray ${version}`,
  folder: `ray-${version}`,
  // `virtualenv`, for clusters that are made of this environment: runtime environments need it.
  packages: [`ray[default]==${version}`, 'pip', 'virtualenv'],
  python: PYTHON,
  lock: lockOf(`ray-${version}.txt`),
})

/** The bridge's environment: this process's own, and how to talk to the cluster. A token is told to the bridge itself. */
export function bridgeEnvironment(python: string, { token, tokenFile, tls }: RayOptions): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // Of several, Ray takes RAY_AUTH_TOKEN; what the run says counts more than what is around it.
    ...(token === undefined && tokenFile === undefined
      ? {}
      : { RAY_AUTH_MODE: 'token', RAY_AUTH_TOKEN: undefined, RAY_AUTH_TOKEN_PATH: tokenFile }),
    ...(tls === undefined
      ? {}
      : { RAY_USE_TLS: '1', RAY_TLS_SERVER_CERT: tls.cert, RAY_TLS_SERVER_KEY: tls.key, RAY_TLS_CA_CERT: tls.ca }),
    // What happens to usage statistics is not ours to decide, and asking costs time.
    RAY_USAGE_STATS_ENABLED: process.env.RAY_USAGE_STATS_ENABLED ?? '0',
    PYTHONUNBUFFERED: '1',
    ...keptBytecode(python),
  }
}
