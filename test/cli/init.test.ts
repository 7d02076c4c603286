import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { manyworlds, newFolder } from './manyworlds.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const FILES = ['.gitignore', 'README.md', 'agents.ts', 'package.json', 'tsconfig.json']
const INSTALL_MS = 300_000

/** Runs a program as a user would whose `node` is the one that runs the tests. */
function shell(program: string, args: readonly string[], cwd: string): string {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  const done = spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, PATH, MANYWORLDS_STORE: '' } })
  expect(done.status, `${program} ${args.join(' ')}\n${done.stdout}${done.stderr}`).toBe(0)
  return done.stdout
}

const npm = (args: readonly string[], cwd: string) =>
  shell('npm', [...args, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], cwd)
const dependency = (folder: string): string =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).dependencies.manyworlds

describe('manyworlds init', () => {
  it('makes a project that installs, runs and type-checks', { timeout: INSTALL_MS }, async () => {
    const folder = newFolder()
    const { code, stdout, stderr } = await manyworlds(['init', 'My Agents'], { cwd: folder })
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toContain("  cd 'My Agents'\n  npm install\n  npm start\n")
    const project = join(folder, 'My Agents')
    expect(readdirSync(project).sort()).toEqual(FILES)
    expect(JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))).toMatchObject({
      name: 'my-agents',
      dependencies: { manyworlds: `file:${repository.replace(/\/$/, '')}` },
    })

    npm(['install'], project)
    expect(shell('node', ['agents.ts'], project)).toBe('whales: 4 words\nbees: 6 words\ncrows: 3 words\n')
    npm(['run', 'check'], project)
    // A mistake is found, so the check looks at what it should.
    writeFileSync(join(project, 'wrong.ts'), `import './agents.ts'\nconst n: number = 'one'\n`)
    expect(() => npm(['run', 'check'], project)).toThrow(/wrong.ts.*TS2322/)
  })

  it('depends on what it was installed from', { timeout: INSTALL_MS }, () => {
    const folder = newFolder()
    const tarball = npm(['pack', '--ignore-scripts', '--pack-destination', folder], repository)
      .trim()
      .split('\n')
      .at(-1)!
    writeFileSync(join(folder, 'package.json'), '{}')
    npm(['install', `./${tarball}`], folder)
    const bin = join(folder, 'node_modules', '.bin', 'manyworlds')

    shell(bin, ['init', 'first'], folder)
    expect(dependency(join(folder, 'first'))).toBe(`file:${join(folder, basename(tarball))}`)
    npm(['install'], join(folder, 'first'))
    expect(shell('node', ['agents.ts'], join(folder, 'first'))).toContain('bees: 6 words')

    // As if it had come from a registry.
    const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies: { manyworlds: version } }))
    shell(bin, ['init', 'second'], folder)
    expect(dependency(join(folder, 'second'))).toBe(`^${version}`)
  })

  it('overwrites nothing, unless told to', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'README.md'), 'mine')
    writeFileSync(join(folder, 'agents.ts'), 'mine')
    const refused = await manyworlds(['init'], { cwd: folder })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toBe(
      'manyworlds: this folder already has these files: agents.ts, README.md. Nothing was changed; use --force to overwrite them\n',
    )
    expect(readdirSync(folder).sort()).toEqual(['README.md', 'agents.ts'])

    expect(await manyworlds(['init', '--force', '.'], { cwd: folder })).toMatchObject({ code: 0, stderr: '' })
    expect(readdirSync(folder).sort()).toEqual(FILES)
    expect(readFileSync(join(folder, 'agents.ts'), 'utf8')).toContain('defineAgent')
  })

  it('says in one line that it cannot write there', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'file'), '')
    const { code, stderr } = await manyworlds(['init', 'file/inside'], { cwd: folder })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^manyworlds: cannot write to .*file\/inside: .*\n$/)
  })
})
