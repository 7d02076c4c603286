import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { double } from '../agents/nodes.ts'
import { type Daemon, startDaemon, startNode } from './daemon.ts'

/** Where a node keeps code, and where its workers are: its own folders, and nobody else's. */

const isRoot = process.getuid?.() === 0
const SOMEBODY_ELSE = 65_534
/** A process id that no system gives away. */
const NO_PID = 2 ** 22 + 1
/** Its processes have numbers that mean others, or none, outside. */
const NEW_PID_NAMESPACE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
const hasPidNamespaces = spawnSync(NEW_PID_NAMESPACE[0]!, [...NEW_PID_NAMESPACE.slice(1), 'true']).status === 0

let root: string
let temporary: string
const started: Pick<Daemon, 'kill'>[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'mw-folders-'))
  chmodSync(root, 0o755)
  temporary = join(root, 'tmp')
  mkdirSync(temporary)
  chmodSync(temporary, 0o1777)
})
afterEach(async () => {
  await Runners.shutdown()
  for (const daemon of started.splice(0)) await daemon.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

async function node(options: Parameters<typeof startNode>[0] = {}): Promise<Daemon> {
  const daemon = await startNode({ ...options, env: { ...process.env, TMPDIR: temporary, ...options.env } })
  started.push(daemon)
  return daemon
}

const use = async (daemon: Daemon, input: number) =>
  (
    await Runners.runTask(double.task(input), {
      engineName: 'nodes',
      nodes: { addresses: [daemon.address] },
      keepWarmMs: 0,
    })
  ).answer

const folders = () => readdirSync(temporary).filter((name) => name.startsWith('manyworlds-node-'))

test('what a killed node has left is removed by the next one, and nothing else is', async () => {
  const killed = await node()
  expect(await use(killed, 1)).toBe(2)
  const [left] = folders()
  await killed.kill('SIGKILL')
  expect(folders()).toEqual([left])

  const precious = join(root, 'precious')
  const lookalike = (name: string, mode = 0o700) => {
    const path = join(temporary, `manyworlds-node-${name}`)
    mkdirSync(path)
    // As if a host had been there, which is gone.
    for (const file of ['precious.txt', 'alive-lock']) writeFileSync(join(path, file), '')
    chmodSync(path, mode)
    return path
  }
  mkdirSync(precious)
  writeFileSync(join(precious, 'precious.txt'), '')
  writeFileSync(join(precious, 'alive-lock'), '')
  symlinkSync(precious, join(temporary, `manyworlds-node-${NO_PID}-link`))
  lookalike(`${NO_PID}-open`, 0o777)
  rmSync(join(lookalike(`${NO_PID}-unlocked`), 'alive-lock'))
  const foreign = lookalike(`${NO_PID}-foreign`)
  if (isRoot) chownSync(foreign, SOMEBODY_ELSE, SOMEBODY_ELSE)
  else rmSync(foreign, { recursive: true })
  const others = folders().filter((name) => name !== left)

  const next = await node()
  expect(folders()).not.toContain(left)
  expect(folders()).toEqual(expect.arrayContaining(others))
  for (const name of others) expect(existsSync(join(temporary, name, 'precious.txt')), name).toBe(true)
  expect(await use(next, 2)).toBe(4)
  await next.kill('SIGTERM')
  expect(folders()).toEqual(others)
})

test('several nodes start and end beside each other without touching each other’s folders', async () => {
  const nodes = await Promise.all([node(), node(), node()])
  expect(folders()).toHaveLength(3)
  await nodes[0]!.kill('SIGTERM')
  expect(folders()).toHaveLength(2)
  expect(await Promise.all([use(nodes[1]!, 3), use(nodes[2]!, 4)])).toEqual([6, 8])
})

test.runIf(hasPidNamespaces)('a node in another PID namespace leaves the folder of a running node alone', async () => {
  const outside = await node()
  const [folder] = folders()
  writeFileSync(join(temporary, folder!, 'in use'), '')
  const inside = await node({ before: NEW_PID_NAMESPACE })
  expect(existsSync(join(temporary, folder!, 'in use'))).toBe(true)
  expect(folders()).toHaveLength(2)
  expect(await Promise.all([use(outside, 5), use(inside, 6)])).toEqual([10, 12])
})

test('a folder for code that others can write to is refused in one line', async () => {
  const cache = join(root, 'cache')
  mkdirSync(cache)
  chmodSync(cache, 0o777)
  const env = { ...process.env, TMPDIR: temporary }
  const daemon = startDaemon({ args: ['--listen', '127.0.0.1:0', '--cache-dir', cache], env })
  started.push(daemon)
  expect(await daemon.exited).toBe(2)
  expect(daemon.output()).toMatch(
    /^manyworlds node: cannot use the folder for code and workers[^\n]*cache can be written by other users \(mode 0777\)[^\n]*--cache-dir[^\n]*\[CONFIG_INVALID\]\n$/,
  )
  expect(folders()).toEqual([])
})

test('without a usual place for code, a node keeps it for as long as it lives, and says so', async () => {
  const { XDG_CACHE_HOME: _, ...env } = process.env
  // Its token is where the driver finds it, too.
  const config = env.XDG_CONFIG_HOME || join(homedir(), '.config')
  const daemon = await node({ env: { ...env, HOME: '/dev/null', XDG_CONFIG_HOME: config }, cache: 'default' })
  expect(
    daemon.output().match(/code from drivers cannot be kept for the next start: E[^\n]*see --cache-dir/g),
  ).toHaveLength(1)
  expect(await use(daemon, 7)).toBe(14)
  await daemon.kill('SIGTERM')
  expect(readdirSync(temporary)).toEqual([])
})
