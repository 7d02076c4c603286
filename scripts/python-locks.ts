/**
 * Makes the lock files in python/locks anew, with the newest versions of what is not named by a version here:
 *
 *     node scripts/python-locks.ts
 *
 * Needed when RAY_VERSION or SPARK_VERSION changes, and to take over security fixes in what they depend on. Then set the
 * environments up with `manyworlds setup ray` and `setup spark`, and run the tests. Environments are named after their lock, so
 * that a new lock makes a new one. It needs uv on the PATH, or the one that manyworlds has made for itself.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { RAY_VERSION, needsOf as rayNeeds } from '../src/engines/ray/environment.ts'
import { SPARK_VERSION, needsOf as sparkNeeds } from '../src/engines/spark/environment.ts'
import { findUv, type Needs } from '../src/python/environment.ts'
import { BUILD_LOCK, LOCKS, UV_LOCK } from '../src/python/locks.ts'

const PYTHON = '3.11'

/** PySpark has no wheel: these make one of its source. */
const build = { file: BUILD_LOCK, packages: ['setuptools', 'wheel'], python: PYTHON }
const uv = { file: UV_LOCK, packages: ['uv'], python: PYTHON }
const environment = ({ folder, packages, python }: Needs) => ({ file: `${folder}.txt`, packages, python })

const command = await findUv((line) => console.error(line))
rmSync(LOCKS, { recursive: true, force: true })
mkdirSync(LOCKS)
for (const lock of [environment(rayNeeds(RAY_VERSION)), environment(sparkNeeds(SPARK_VERSION)), build, uv]) {
  const path = join(LOCKS, lock.file)
  const where = ['--universal', '--python-version', lock.python]
  // Neither the addresses of an index nor those of this machine.
  const quiet = ['--quiet', '--no-header', '--no-annotate', '--no-emit-index-url', '--no-emit-find-links']
  const args = ['pip', 'compile', '--generate-hashes', ...where, ...quiet, '--output-file', path, '-']
  execFileSync(command, args, { input: lock.packages.join('\n'), stdio: ['pipe', 'ignore', 'inherit'] })
  if (/:\/\//.test(readFileSync(path, 'utf8'))) throw new Error(`${path} has an address in it`)
  console.log(path)
}
