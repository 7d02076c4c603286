import { keptBytecode } from '../../python/bytecode.ts'
import type { PythonEnvSpec } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'
import type { RayOptions } from './options.ts'

/** Installed unless the cluster has another version. */
export const RAY_VERSION = '2.60.0'
const PYTHON = '3.11'

export const needsOf = (version: string): PythonEnvSpec => ({
  title: `Ray ${version}`,
  folder: `ray-${version}`,
  // `virtualenv`: runtime environments need it on clusters started from this environment.
  packages: [`ray[default]==${version}`, 'pip', 'virtualenv'],
  python: PYTHON,
  lock: lockOf(`ray-${version}.txt`),
})

/** The bridge's environment variables: this process's own plus the cluster's settings. A token goes through a pipe instead. */
export function bridgeEnvironment(python: string, { token, tokenFile, tls }: RayOptions): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // Ray prefers RAY_AUTH_TOKEN, but the run's own options must win over the environment.
    ...(token === undefined && tokenFile === undefined
      ? {}
      : { RAY_AUTH_MODE: 'token', RAY_AUTH_TOKEN: undefined, RAY_AUTH_TOKEN_PATH: tokenFile }),
    ...(tls === undefined
      ? {}
      : { RAY_USE_TLS: '1', RAY_TLS_SERVER_CERT: tls.cert, RAY_TLS_SERVER_KEY: tls.key, RAY_TLS_CA_CERT: tls.ca }),
    // Skips Ray's prompt about usage statistics, which costs time.
    RAY_USAGE_STATS_ENABLED: process.env.RAY_USAGE_STATS_ENABLED ?? '0',
    PYTHONUNBUFFERED: '1',
    ...keptBytecode(python),
  }
}
