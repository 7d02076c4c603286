import { type Made, make, makeAndAsk } from '../../cli/commands/setup/make.ts'
import type { SetupArgs } from '../../cli/commands/setup/spec.ts'
import { checkVersion } from '../../cli/commands/setup/version.ts'
import { askCluster } from './ask-cluster.ts'
import { RAY_VERSION } from './environment.ts'
import { needsFor } from './versions.ts'

const ASK = ['-c', 'import ray, platform; print("Ray", ray.__version__, "on Python", platform.python_version())']

/** Installs the Python environment with which the Ray engine talks to clusters. */
export async function setUpRay({ version = RAY_VERSION, address, tokenFile, force }: SetupArgs): Promise<Made> {
  checkVersion(version, RAY_VERSION)
  const there = address === undefined ? { ray: version } : await askCluster(address, tokenFile, make)
  return makeAndAsk(needsFor(there), force, ASK, (output) => output.trim().split('\n').at(-1))
}
