/**
 * Makes the lock files in python/locks and test/python/locks anew, with the newest versions of what is not named by a version here:
 *
 *     node scripts/python-locks.ts              all of them
 *     node scripts/python-locks.ts gymnasium    those whose name begins so; `none`: only src/python/carried.ts
 *
 * Needed when a version that it imports changes, and to take over security fixes in what they depend on. Then set the
 * environments up with `manyworlds setup`, and run the tests. Environments are named after their lock, so that a new lock makes
 * a new one. It needs uv on the PATH, or the one that manyworlds has made for itself.
 *
 * It also writes src/python/carried.ts: the texts that workers on other machines need. Run it with `none` when
 * python/world_server.py has changed.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WORLD_KINDS, worldEnvSpec } from '../src/agents/worlds/world-packages.ts'
import { RAY_VERSION, needsOf as rayNeeds } from '../src/engines/ray/environment.ts'
import { SPARK_VERSION, needsOf as sparkNeeds } from '../src/engines/spark/environment.ts'
import { ownPackage } from '../src/own-package.ts'
import { findUv, type PythonEnvSpec } from '../src/python/environment.ts'
import { LOCKS } from '../src/python/locks.ts'
import { loraNeeds } from '../src/train/lora/environment.ts'
import { TEST_ENVIRONMENTS } from '../test/python/environments.ts'

const PYTHON = '3.11'

/** Some packages have no wheel: these make one of their source. */
const build = { file: 'build.txt', folder: LOCKS, packages: ['setuptools', 'wheel'], python: PYTHON }
const uv = { file: 'uv.txt', folder: LOCKS, packages: ['uv'], python: PYTHON }
const environment = ({ folder, packages, python }: PythonEnvSpec) => ({
  ...{ file: `${folder}.txt`, folder: LOCKS, packages, python },
})
/** What tests and benchmarks compare with. It is not part of the package. */
const TEST_LOCKS = join(ownPackage.folder, 'test', 'python', 'locks')
const tests = TEST_ENVIRONMENTS.map(({ name, packages, python }) => ({
  ...{ file: `${name}.txt`, folder: TEST_LOCKS, packages, python },
}))

const engines = [rayNeeds(RAY_VERSION), sparkNeeds(SPARK_VERSION)].map(environment)
const worlds = WORLD_KINDS.map((kind) => environment(worldEnvSpec(kind)))
const lora = environment(loraNeeds())
const locks = [...engines, ...worlds, lora, build, uv, ...tests]

/** One of a version that is no longer installed. */
for (const folder of [LOCKS, TEST_LOCKS])
  for (const file of readdirSync(folder))
    if (!locks.some((lock) => lock.folder === folder && lock.file === file)) rmSync(join(folder, file))

const [asked = ''] = process.argv.slice(2)
const wanted = locks.filter(({ file }) => file.startsWith(asked))
const command = wanted.length === 0 ? '' : await findUv((line) => console.error(line))
for (const lock of wanted) {
  const path = join(lock.folder, lock.file)
  rmSync(path, { force: true })
  const where = ['--universal', '--python-version', lock.python]
  // Neither the addresses of an index nor those of this machine.
  const quiet = ['--quiet', '--no-header', '--no-annotate', '--no-emit-index-url', '--no-emit-find-links']
  const args = ['pip', 'compile', '--generate-hashes', ...where, ...quiet, '--output-file', path, '-']
  execFileSync(command, args, { input: lock.packages.join('\n'), stdio: ['pipe', 'ignore', 'inherit'] })
  if (/:\/\//.test(readFileSync(path, 'utf8'))) throw new Error(`${path} has an address in it`)
  console.log(path)
}

const literal = (path: string) => `\`${readFileSync(path, 'utf8').replaceAll(/[\\`]|\$\{/g, '\\$&')}\``

const carried = [
  ...[...worlds, build, uv].map(({ file }) => [file, join(LOCKS, file)]),
  ['world_server.py', join(ownPackage.folder, 'python', 'world_server.py')],
].map(([name, path]) => `  '${name}': ${literal(path!)},\n`)
const text = `// Made by scripts/python-locks.ts from the files in the folder python; not to be changed by hand.

/** By name, what workers need of that folder. */
export const CARRIED: Readonly<Record<string, string | undefined>> = {\n${carried.join('')}}\n`
writeFileSync(join(ownPackage.folder, 'src', 'python', 'carried.ts'), text)
