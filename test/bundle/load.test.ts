import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { LOAD_LIMIT_MS } from '../../src/bundle/check-load.ts'
import { makeBundle } from '../../src/bundle/index.ts'
import { project, proofFrom } from './project.ts'

/** Before the limit: a slow machine takes some seconds to bundle and to load. */
const AT_ONCE_MS = LOAD_LIMIT_MS - 3000
/** For what may take long on a slow machine. */
const WITHIN_MS = 60_000
const SLOW = { timeout: 180_000 }

const fails = (message: RegExp) => ({ code: 'BUNDLE_LOAD_FAILED', message: expect.stringMatching(message) })
const bundleOf = (agent: string, options?: Parameters<typeof makeBundle>[1]) =>
  makeBundle(join(project({ 'agent.ts': agent }), 'agent.ts'), options)

test('a script that parks in a worker counts as loaded', async () => {
  const park = `(globalThis as any)[Symbol.for('manyworlds.parked')]()`
  // The timer keeps the process alive, as a connection would.
  const script = `setInterval(() => {}, 1000);\n${park}\nawait new Promise(() => {})\n`
  expect((await bundleOf(script)).warnings).toEqual([])
})

test('a script that throws what a blocking call throws in a worker counts as loaded', async () => {
  const script = `throw Object.assign(new Error('parked'), { name: 'Parked' })\n`
  expect((await bundleOf(script)).warnings).toEqual([])
})

test('the module knows that it is in a worker', async () => {
  const script = `if (process.env.MANYWORLDS_WORKER !== '1') throw new Error('not a worker')\nexport {}\n`
  await expect(bundleOf(script)).resolves.toBeDefined()
})

test('a module that throws at load is refused with its own message and its own line', async () => {
  const folder = project({
    'agent.ts': `import './lib/setup.ts'\n`,
    'lib/setup.ts': `type A = 1\nfunction prepare(): never {\n  throw new TypeError('no key given')\n}\n\nprepare()\nexport {}\n`,
  })
  await expect(makeBundle(join(folder, 'agent.ts'))).rejects.toMatchObject(
    fails(/agent\.ts fails to load from it: TypeError: no key given\n {4}at prepare \(lib\/setup\.ts:3:9\)\n/),
  )
})

test('a module that needs an environment variable is tried with that of the workers', async () => {
  const script = `if (!process.env.API_KEY) throw new Error('API_KEY is not set')\nexport {}\n`
  await expect(bundleOf(script, { env: {} })).rejects.toMatchObject(fails(/API_KEY is not set/))
  await expect(bundleOf(script, { env: { API_KEY: 'x' } })).resolves.toBeDefined()
})

test('a file that was not shipped is named as it should be in bundle.files', async () => {
  const script = `import { readFileSync } from 'node:fs'
    export const text = readFileSync(new URL('./prompts/a.txt', import.meta.url), 'utf8')`
  const folder = project({ 'agent.ts': script, 'prompts/a.txt': 'hi' })
  await expect(makeBundle(join(folder, 'agent.ts'))).rejects.toMatchObject(fails(/files: \['prompts\/a\.txt'\]/))
})

test('a file that was not shipped is named from the folder of the agent, also when it lies elsewhere', async () => {
  const folder = project({
    'agents/agent.ts': `import '../shared/read.ts'`,
    'shared/read.ts': `import fs from 'node:fs'\nfs.readFileSync(import.meta.dirname + '/rules.md')`,
  })
  await expect(makeBundle(join(folder, 'agents/agent.ts'))).rejects.toMatchObject(
    fails(/files: \['\.\.\/shared\/rules\.md'\]/),
  )
})

test('a package whose name only shows at run time comes with what to do', async () => {
  const script = `const name = ['p', 'g'].join('')\nexport const proof = await import(name)\n`
  await expect(bundleOf(script)).rejects.toMatchObject(fails(/Cannot find package 'pg'[\s\S]*external: \['pg'\]/))
})

test('a module that ends its process is refused with its exit code and what it said', async () => {
  const script = `console.error('usage: agent <name>')\nprocess.exit(3)\n`
  await expect(bundleOf(script)).rejects.toMatchObject(fails(/ended with code 3 while loading it\.\n\s+usage: agent/))
})

test('a module that ends its process is noticed at once, also when a process that it started holds its output', async () => {
  const script = `import { spawn } from 'node:child_process'
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
    process.exit(4)`
  const started = Date.now()
  await expect(bundleOf(script)).rejects.toMatchObject(fails(/ended with code 4/))
  expect(Date.now() - started).toBeLessThan(AT_ONCE_MS)
})

test('a top-level await that nothing can ever settle is refused at once, not after the limit', async () => {
  const started = Date.now()
  await expect(bundleOf(`await new Promise(() => {})\nexport {}\n`)).rejects.toMatchObject(fails(/never settled/))
  expect(Date.now() - started).toBeLessThan(AT_ONCE_MS)
})

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
// Some time, because a process that has ended counts as alive until init has taken note of it.
const gone = (pid: number) => vi.waitFor(() => expect(isAlive(pid)).toBe(false), WITHIN_MS)
const pidIn = (file: string) => Number(readFileSync(file, 'utf8'))

/** Notes its own pid and that of a process that it starts; then never gives back control. */
const BLOCKED = `import { spawn } from 'node:child_process'
  import { writeFileSync } from 'node:fs'
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  writeFileSync(process.env.PIDS + '.child', String(child.pid))
  writeFileSync(process.env.PIDS + '.self', String(process.pid))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`

test('a module that blocks is given up at the limit, and no process stays', SLOW, async () => {
  const folder = project({ 'agent.ts': BLOCKED })
  const pids = join(folder, 'pids')
  // Time enough for its process to start and to note its pid.
  const made = makeBundle(join(folder, 'agent.ts'), { loadLimitMs: 8500, env: { ...process.env, PIDS: pids } })
  await expect(made).rejects.toMatchObject(fails(/did not finish loading within 8\.5 s/))
  expect(isAlive(pidIn(`${pids}.self`))).toBe(false)
  await gone(pidIn(`${pids}.child`))
})

test('a process that a module started is ended also when the module loaded well', SLOW, async () => {
  const folder = project({ 'agent.ts': BLOCKED.replace(/Atomics.*/, 'export const proof = 1') })
  const pids = join(folder, 'pids')
  await makeBundle(join(folder, 'agent.ts'), { env: { ...process.env, PIDS: pids } })
  await gone(pidIn(`${pids}.child`))
})

test.skipIf(process.platform === 'win32')(
  'when the driver is killed meanwhile, no process and no folder stays',
  SLOW,
  async () => {
    const folder = project({ 'agent.ts': BLOCKED })
    mkdirSync(join(folder, 'tmp'))
    const pids = join(folder, 'pids')
    const index = new URL('../../src/bundle/index.ts', import.meta.url).href
    const script = `const { makeBundle } = await import(${JSON.stringify(index)}); await makeBundle('agent.ts')`
    const driver = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: folder,
      env: { ...process.env, PIDS: pids, TMPDIR: join(folder, 'tmp') },
      stdio: 'ignore',
    })
    await vi.waitFor(() => expect(pidIn(`${pids}.self`)).toBeGreaterThan(0), WITHIN_MS)
    driver.kill('SIGKILL')
    await once(driver, 'exit')
    await gone(pidIn(`${pids}.self`))
    await gone(pidIn(`${pids}.child`))
    await expect.poll(() => readdirSync(join(folder, 'tmp'))).toEqual([])
  },
)

test('options of this process that mean nothing elsewhere do not reach the load', async () => {
  const env = { ...process.env, NODE_OPTIONS: '--import ./nowhere.mjs', NODE_PATH: '/nowhere' }
  await expect(bundleOf('export const proof = process.env.NODE_PATH', { env })).resolves.toBeDefined()
})

test('an error in a run shows the lines of the source, and frames in packages are not mistaken for them', async () => {
  const folder = project({
    // Comes before the package in the bundle: its last line must not swallow what follows.
    'first.ts': 'export const first = (call: () => void) => call()',
    'agent.ts': `import { first } from './first.ts'
import pg from 'pg'
interface Unused { a: 1 }

export const proof = () => {
  try {
    first(() => pg.types.setTypeParser(undefined as never, undefined as never))
  } catch (error) {
    return String((error as Error).stack).split('\\n').slice(1, 5).map((line) => /([^/]+:\\d+):\\d+\\)?$/.exec(line)?.[1])
  }
}`,
  })
  expect(await proofFrom(await makeBundle(join(folder, 'agent.ts')))).toEqual([
    expect.stringMatching(/^manyworlds\.bundle\.mjs:\d+$/),
    'agent.ts:7',
    'first.ts:1',
    'agent.ts:7',
  ])
})
