import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bridgeEnvironment, needsOf, RAY_VERSION } from '../../dist/engines/ray/environment.js'
import { ensureEnvironment } from '../../dist/python/environment.js'

/** The program of the actors by itself, with real processes: what would take luck to see on a cluster. */

const ACTOR = fileURLToPath(new URL('actor.py', import.meta.url))
const BLOBS = fileURLToPath(new URL('actor-blobs.py', import.meta.url))
const PYTHON_FOLDER = fileURLToPath(new URL('../../python', import.meta.url))
/** In place of Node: says what it hears. */
const ECHO = `#!/bin/bash\nfd=\${MANYWORLDS_FDS%%,*}\nexec cat <&$fd >&$fd\n`

/** Python reads Ray for some seconds, up to three times in a test, and for longer where others compute as well. */
vi.setConfig({ testTimeout: 240_000 })

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-ray-actor-'))
  writeFileSync(join(folder, 'echo'), ECHO, { mode: 0o755 })
  mkdirSync(join(folder, 'tmp'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

async function runActor(): Promise<{ found: Record<string, unknown>; codeFolder: string }> {
  const python = await ensureEnvironment(needsOf(RAY_VERSION), () => {})
  const env = { ...process.env, TMPDIR: join(folder, 'tmp') }
  const { stdout } = await promisify(execFile)(python, [ACTOR, PYTHON_FOLDER, join(folder, 'echo')], { env })
  const [found, codeFolder] = stdout.trim().split('\n')
  return { found: JSON.parse(found!), codeFolder: codeFolder! }
}

test('Python compiles what it imports once, also where containers tell it not to, and not beside our programs', async () => {
  vi.stubEnv('PYTHONDONTWRITEBYTECODE', '1')
  const python = await ensureEnvironment(needsOf(RAY_VERSION), () => {})
  const env = { ...bridgeEnvironment(python, {}), PYTHONPATH: PYTHON_FOLDER }
  const program = 'import sys, ray_worker; print(sys.dont_write_bytecode, ray_worker.__cached__)'
  const { stdout } = await promisify(execFile)(python, ['-c', program], { env })
  expect(stdout).toMatch(`False ${join(python, '..', '..', 'bytecode')}/`)
})

test('what was sent to a process that has ended does not reach the next one, nor does the order to end it', async () => {
  const { found } = await runActor()
  expect(found).toEqual({ first: 'one.two.', signal: 'SIGKILL', second: 'for the second.', left: [] })
})

test('code is looked for only in a folder of our own that nobody else can enter', async () => {
  const { codeFolder } = await runActor()
  expect(lstatSync(codeFolder)).toMatchObject({ uid: userInfo().uid })
  expect(lstatSync(codeFolder).mode & 0o777).toBe(0o700)
  // The next actor uses it again.
  expect((await runActor()).codeFolder).toBe(codeFolder)
  // Open to others, or not a folder but a way to one: somebody may have prepared it.
  chmodSync(codeFolder, 0o755)
  const bait = join(folder, 'bait')
  mkdirSync(bait, { mode: 0o700 })
  symlinkSync(bait, join(folder, 'tmp', `manyworlds-ray-${userInfo().uid}-0`))
  const another = (await runActor()).codeFolder
  expect(another).not.toBe(codeFolder)
  expect(basename(another)).not.toBe(`manyworlds-ray-${userInfo().uid}-0`)
})

test('a blob is fetched once for all actors of a machine, and is there until the last has let go of it', async () => {
  const python = await ensureEnvironment(needsOf(RAY_VERSION), () => {})
  const env = { ...process.env, TMPDIR: join(folder, 'tmp') }
  const { stdout } = await promisify(execFile)(python, [BLOBS, PYTHON_FOLDER], { env })
  expect(JSON.parse(stdout)).toEqual({
    failed: [{}, {}, {}],
    // Once; and again after it was dropped: the spoilt one, and another.
    fetched: 3,
    ...{ right: true, both: 1, one: 1, none: [], left: true },
    spoilt: [expect.stringContaining('is not what its hash')],
  })
})
