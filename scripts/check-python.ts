/**
 * Lints the Python of this repository with ruff, in a version that is locked: part of `npm run check`.
 *
 *     node scripts/check-python.ts          reports
 *     node scripts/check-python.ts --fix    repairs what can be repaired
 *
 * The first call installs ruff with uv into the user's cache folder, as `manyworlds setup` installs Ray; later calls take a
 * few hundredths of a second.
 */

import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { ownPackage } from '../src/own-package.ts'
import { RUFF } from '../test/python/environments.ts'
import { pythonOf } from '../test/python/locked.ts'

const ruff = join(dirname(await pythonOf(RUFF)), 'ruff')
const fix = process.argv.includes('--fix')
const run = (...args: string[]) =>
  spawnSync(ruff, [...args, '--quiet', '.'], { cwd: ownPackage.folder, stdio: 'inherit' }).status ?? 1

const linted = run('check', ...(fix ? ['--fix'] : []))
const formatted = run('format', ...(fix ? [] : ['--diff']))
process.exitCode = linted || formatted
