import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WORLD_KINDS, worldEnvSpec } from '../../dist/agents/worlds/world-packages.js'
import { RAY_VERSION, needsOf as rayNeeds } from '../../dist/engines/ray/environment.js'
import { SPARK_VERSION, needsOf as sparkNeeds } from '../../dist/engines/spark/environment.js'
import { CARRIED } from '../../dist/python/carried.js'
import { findUv } from '../../dist/python/environment.js'
import { LOCKS } from '../../dist/python/locks.js'
import { loraNeeds } from '../../dist/train/lora/environment.js'
import { manyworlds, newFolder, programs } from '../cli/manyworlds.ts'

/** Python environments have what their lock files say, from whichever index it comes. */

const worlds = WORLD_KINDS.map((kind) => worldEnvSpec(kind))
const pinned = [rayNeeds(RAY_VERSION), sparkNeeds(SPARK_VERSION), loraNeeds(), ...worlds]
const SYSTEM = '/usr/bin:/bin'
const ARGS = 'for one; do echo "$one"; done'

/** An index of packages that has these files, and no others. */
async function startIndex(folder: string): Promise<string> {
  const files = readdirSync(folder)
  const server = createServer(({ url = '' }, response) => {
    const file = files.find((name) => url === `/${name}`)
    if (file !== undefined) return response.end(readFileSync(join(folder, file)))
    const links = files.filter((name) => url.startsWith(`/simple/${name.split('-')[0]}/`))
    response.setHeader('content-type', 'text/html')
    return response.end(links.map((name) => `<a href="/${name}">${name}</a>`).join('\n'))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/simple`
}

describe('lock files', () => {
  test('there is one for each environment, one for uv, and one for what builds', () => {
    const files = ['build.txt', 'uv.txt', ...pinned.map(({ folder }) => `${folder}.txt`)]
    expect(readdirSync(LOCKS).sort()).toEqual(files.sort())
  })

  test('what travels with workers is what is in the folder', () => {
    const files = ['build.txt', 'uv.txt', ...worlds.map(({ folder }) => `${folder}.txt`)].map((name) =>
      join(LOCKS, name),
    )
    const texts = [...files, join(LOCKS, '..', 'world_server.py')].map((path) => [
      basename(path),
      readFileSync(path, 'utf8'),
    ])
    expect(CARRIED, 'run scripts/python-locks.ts none').toEqual(Object.fromEntries(texts))
  })

  test.each(readdirSync(LOCKS))('%s has versions and hashes, and no addresses', (file) => {
    const text = readFileSync(join(LOCKS, file), 'utf8')
    const packages = text.trimEnd().split(/\n(?=\S)/)
    for (const one of packages)
      expect(one).toMatch(/^[\w.-]+==[\w.]+( ; [^\n\\]+)? (\\\n {4}--hash=sha256:[0-9a-f]{64} ?)+$/)
    expect(text).not.toContain('://')
  })

  test.each(pinned)('that of $title has the packages that it is for', ({ folder, packages }) => {
    const text = readFileSync(join(LOCKS, `${folder}.txt`), 'utf8')
    for (const one of packages) {
      const [name, version = ''] = one.replace(/\[.*\]/, '').split('==')
      expect(`\n${text}`).toContain(`\n${name}==${version}`)
    }
  })
})

describe('setting up', () => {
  /** A uv that says what it was asked for, and an environment whose Python says `Ray`. */
  function recorded() {
    const cache = newFolder()
    const uv = `(${ARGS}) >> "${cache}/asked"; if [ "$1" = venv ]; then for folder; do :; done; mkdir -p "$folder/bin"; cp "$0.python" "$folder/bin/python"; fi`
    const bin = programs({ uv, 'uv.python': 'echo Ray' })
    const setUp = (...words: string[]) =>
      manyworlds(['setup', 'ray', ...words], { env: { PATH: `${bin}:${SYSTEM}`, XDG_CACHE_HOME: cache } })
    return { cache, setUp, asked: () => readFileSync(join(cache, 'asked'), 'utf8').split('\n') }
  }

  test('installs what the lock file says, with hashes, in a folder that is named after it', async () => {
    const { setUp, asked } = recorded()
    const { code, stdout, stderr } = await setUp()
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('lock') })
    expect(stdout).toMatch(new RegExp(`/ray-${RAY_VERSION.replaceAll('.', '\\.')}-[0-9a-f]{8}\n$`))
    expect(asked()).toEqual(expect.arrayContaining(['--require-hashes', join(LOCKS, `ray-${RAY_VERSION}.txt`)]))
    expect(asked()).not.toContain(`ray[default]==${RAY_VERSION}`)
  })

  test('a version that only a cluster asks for is pinned, and the rest is said not to be locked', async () => {
    const { setUp, asked } = recorded()
    const { code, stderr } = await setUp('--version', '2.50.0')
    expect(code).toBe(0)
    expect(stderr).toContain('there is no lock file for Ray 2.50.0: installing ray[default]==2.50.0, ')
    expect(asked()).toContain('ray[default]==2.50.0')
    expect(asked()).not.toContain('--require-hashes')
  })

  test('further packages are installed beside what is locked, in a folder of their own', async () => {
    const cache = newFolder()
    const uv = `(${ARGS}) >> "${cache}/asked"; if [ "$1" = venv ]; then for folder; do :; done; mkdir -p "$folder/bin"; cp "$0.python" "$folder/bin/python"; fi`
    const bin = programs({ uv, 'uv.python': 'echo Gymnasium' })
    const env = { PATH: `${bin}:${SYSTEM}`, XDG_CACHE_HOME: cache }
    const { code, stdout, stderr } = await manyworlds(['setup', 'gymnasium', '--packages', 'swig,pygame==2.6.1'], {
      env,
    })
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('there is no lock file for swig, pygame==2.6.1'),
    })
    expect(stdout).toMatch(/^Gymnasium, in .*\/gymnasium-[\d.]+-[0-9a-f]{8}-[0-9a-f]{8}\n$/)
    const asked = readFileSync(join(cache, 'asked'), 'utf8')
    const lock = /--require-hashes\n[\s\S]*--requirements\n(.*gymnasium-.*\.txt)\n/.exec(asked)?.[1]
    expect(asked).toContain(`--constraints\n${lock}\n--\nswig\npygame==2.6.1\n`)
  })

  test('packages of the right name and version that are not the locked ones are refused', {
    timeout: 120_000,
  }, async () => {
    const wheels = newFolder()
    const wheel = `
import sys, zipfile
for name, version in (one.split("==") for one in sys.argv[2:]):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}/__init__.py", "")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr(f"{info}/RECORD", "")
`
    const lock = readFileSync(join(LOCKS, `spark-${SPARK_VERSION}.txt`), 'utf8')
    const locked = [...lock.matchAll(/^\S+==\S+/gm)].map(([name]) => name)
    execFileSync('python3', ['-c', wheel, wheels, ...locked])
    const index = await startIndex(wheels)
    const uv = dirname(await findUv(() => {}))
    const cache = newFolder()
    const env = { XDG_CACHE_HOME: cache, UV_DEFAULT_INDEX: index, PATH: `${uv}:${process.env.PATH}` }
    const { code, stderr } = await manyworlds(['setup', 'spark'], { env })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/hash[\s\S]*\[PYTHON_SETUP_FAILED\]\n$/i),
    })
    expect(readdirSync(join(cache, 'manyworlds', 'python')).filter((name) => name.startsWith('spark'))).toEqual([])
  })

  test('others cannot write where the environments are', async () => {
    const { cache, setUp } = recorded()
    const folder = join(cache, 'manyworlds', 'python')
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    expect(await setUp()).toMatchObject({ code: 0 })
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    // What is there may be somebody else's by now.
    chmodSync(folder, 0o777)
    const { code, stderr } = await setUp()
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /can be written by other users \(mode 0777\).*remove it.* \[PYTHON_SETUP_FAILED\]\n$/,
      ),
    })
  })

  test.runIf(process.getuid?.() === 0)('a folder of another user is refused', async () => {
    const { cache, setUp } = recorded()
    const folder = join(cache, 'manyworlds', 'python')
    mkdirSync(folder, { recursive: true })
    chownSync(folder, 4242, 4242)
    const { code, stderr } = await setUp()
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /belongs to another user \(uid 4242\); .*XDG_CACHE_HOME \[PYTHON_SETUP_FAILED\]\n$/,
      ),
    })
  })
})
