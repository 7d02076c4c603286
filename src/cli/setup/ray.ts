import { RAY_VERSION } from '../../engines/ray/environment.ts'
import { needsFor } from '../../engines/ray/versions.ts'
import type { SetupArgs } from '../specs/setup.ts'
import { askCluster } from './ask-cluster.ts'
import { type Made, make, makeAndAsk } from './make.ts'
import { checkVersion } from './version.ts'

const ASK = ['-c', 'import ray, platform; print("Ray", ray.__version__, "on Python", platform.python_version())']

/** What the Ray engine talks to clusters with. */
export async function setUpRay({ version = RAY_VERSION, address, tokenFile, force }: SetupArgs): Promise<Made> {
  checkVersion(version, RAY_VERSION)
  const there = address === undefined ? { ray: version } : await askCluster(address, tokenFile, make)
  return makeAndAsk(needsFor(there), force, ASK, (output) => output.trim().split('\n').at(-1))
}
