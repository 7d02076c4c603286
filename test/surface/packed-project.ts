import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Ended, runScript } from '../support/run-script.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const { dependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}

export interface PackedProject {
  readonly folder: string
  /** Makes these packages available, as `npm install` would. */
  install(...packages: readonly string[]): void
  /** Runs a module with this content. */
  run(code: string): Promise<Ended>
  manyworlds(...words: readonly string[]): Promise<Ended>
  remove(): void
}

/**
 * An empty folder with what a user gets: the packed tarball and its dependencies, and none of its optional peers. Packages are links
 * to those of this repository, so that nothing is fetched.
 */
export function packedProject(): PackedProject {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'manyworlds-packed-')))
  const modules = join(folder, 'node_modules')
  const install = (...packages: readonly string[]) => {
    for (const name of packages) {
      mkdirSync(dirname(join(modules, name)), { recursive: true })
      symlinkSync(join(repository, 'node_modules', name), join(modules, name))
    }
  }
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], {
    cwd: repository,
    encoding: 'utf8',
  })
  mkdirSync(join(modules, 'manyworlds'), { recursive: true })
  const tarball = join(folder, packed.trim().split('\n').at(-1)!)
  execFileSync('tar', ['xzf', tarball, '--strip-components=1', '-C', join(modules, 'manyworlds')])
  install(...Object.keys(dependencies))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const options = { cwd: folder, env: { MANYWORLDS_STORE: 'off' } }
  let scripts = 0
  return {
    folder,
    install,
    run: (code) => {
      const path = join(folder, `script-${++scripts}.js`)
      writeFileSync(path, code)
      return runScript(path, options)
    },
    manyworlds: (...words) => runScript(join(modules, 'manyworlds/dist/cli/main.js'), { ...options, args: words }),
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }),
  }
}
