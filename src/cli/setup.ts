import { rmSync } from 'node:fs'
import { RAY_VERSION } from '../engines/ray/environment.ts'
import { needsFor } from '../engines/ray/versions.ts'
import { ManyworldsError } from '../errors.ts'
import { ensureEnvironment, environmentFolder, type Needs } from '../python/environment.ts'
import { probe } from './doctor/probe.ts'
import { askCluster } from './setup/ask-cluster.ts'
import type { SetupArgs } from './specs/setup.ts'
import { UsageError } from './usage-error.ts'

const ASK = 'import ray, platform; print("Ray", ray.__version__, "on Python", platform.python_version())'

/** `manyworlds setup ray` */
export async function run({ version = RAY_VERSION, address, tokenFile, force }: SetupArgs): Promise<number> {
  if (!/^\d+\.\d+\.\d+\w*$/.test(version))
    throw new UsageError(`--version must be a version such as ${RAY_VERSION}, not ${version}`)
  const make = (needs: Needs) => ensureEnvironment(needs, (line) => void process.stderr.write(`manyworlds: ${line}\n`))
  const there = address === undefined ? { ray: version } : await askCluster(address, tokenFile, make)
  const needs = needsFor(there)
  if (force) rmSync(environmentFolder(needs), { recursive: true, force: true })
  const python = await make(needs)
  const asked = await probe(python, ['-c', ASK])
  if (!asked.ok)
    throw new ManyworldsError(
      'PYTHON_SETUP_FAILED',
      `${needs.title} is installed in ${environmentFolder(needs)} and does not work: ${asked.problem}. Make it anew with --force`,
    )
  process.stdout.write(`${asked.output.trim().split('\n').at(-1)}, in ${environmentFolder(needs)}\n`)
  return 0
}
