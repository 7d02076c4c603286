import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { whereAmI } from '../agents/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { makeAuthority } from './certificates.ts'
import { startDaemon } from './daemon.ts'

/** Nodes that call the driver: they come and go while a run is going on. */

const folder = mkdtempSync(join(tmpdir(), 'mw-join-'))
const tokenFile = join(folder, 'token')
writeFileSync(tokenFile, 'mw_a-token-for-this-test-only', { mode: 0o600 })
const started: ReturnType<typeof startDaemon>[] = []
let port: number

beforeEach(async () => {
  port = await freePort()
})
afterEach(async () => {
  await Runners.shutdown()
  await Promise.all(started.splice(0).map((daemon) => daemon.kill()))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function joining(...args: string[]) {
  const cache = join(folder, `cache-${started.length}`)
  const daemon = startDaemon({
    args: [
      '--connect',
      `ws://127.0.0.1:${port}`,
      '--token-file',
      tokenFile,
      '--workers',
      '1',
      '--cache-dir',
      cache,
      ...args,
    ],
  })
  started.push(daemon)
  return daemon
}

const config = () => ({
  engineName: 'nodes' as const,
  nodes: { listen: `127.0.0.1:${port}`, tokenFile },
  concurrency: 2,
})

const SOON = { timeout: 60_000 }
const SLOW = { timeout: 240_000 }

/** A run that goes on until it is stopped: nodes may take long to join. `places`: those that have answered. */
function goesOn(ms: number) {
  const places = new Set<unknown>()
  let given = 0
  let stopped = false
  function* tasks() {
    for (; !stopped && given < 20_000; given++) yield whereAmI.task(ms)
  }
  const collect = async () => {
    const responses = []
    for await (const response of Runners.streamTask(tasks(), config())) {
      places.add(response.answer)
      responses.push(response)
    }
    return responses
  }
  const collected = collect()
  // Whoever stops it is told.
  collected.catch(() => {})
  return {
    places,
    stop: async () => {
      stopped = true
      const responses = await collected
      expect(responses.length).toBe(given)
      expect(responses.every(({ success, attempts }) => success && attempts === 1)).toBe(true)
    },
  }
}

const manyTasks = (count: number, ms: number) => Array.from({ length: count }, () => whereAmI.task(ms))

test('nodes join a run that is going on, leave it again, and nothing is lost', SLOW, async () => {
  const { places, stop } = goesOn(100)
  const first = joining()
  await expect.poll(() => places, SOON).toContain(first.pid)
  const second = joining()
  await expect.poll(() => places, SOON).toContain(second.pid)
  // The scheduler takes the first one away.
  first.child.kill('SIGTERM')
  expect(await first.exited).toBe(0)
  const third = joining()
  await expect.poll(() => places, SOON).toContain(third.pid)
  await stop()
  await Runners.shutdown()
  // The driver is done, and so are they: an allocation is given back.
  expect(await second.exited).toBe(0)
  expect(await third.exited).toBe(0)
})

test('a node that joined and was killed is missed, and its tasks go to the others', SLOW, async () => {
  const [first, second] = [joining(), joining()]
  const { places, stop } = goesOn(200)
  for (const { pid } of [first, second]) await expect.poll(() => places, SOON).toContain(pid)
  await first.kill('SIGKILL')
  await stop()
})

test('a task that requires a label waits until a node with that label joins', async () => {
  joining()
  const run = Runners.runTask([whereAmI.task(1), whereAmI.task(1, { id: 'picky', requires: ['gpu'] })], config())
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const gpu = joining('--labels', 'gpu,big')
  const responses = await run
  expect(responses.get('picky')!.answer).toBe(gpu.pid)
})

test('over TLS both ways: the node checks the driver, the driver checks the node', async () => {
  const authority = await makeAuthority(folder, 'all')
  const driver = await authority.sign('127.0.0.1')
  const node = await authority.sign('node.example')
  const daemon = startDaemon({
    args: [
      ...['--connect', `wss://127.0.0.1:${port}`, '--token-file', tokenFile, '--cache-dir', join(folder, 'cache-tls')],
      ...['--tls-ca', authority.path, '--tls-cert', node.cert, '--tls-key', node.key],
    ],
  })
  started.push(daemon)
  const tls = { ca: authority.path, ...driver }
  const responses = await Runners.runTask(manyTasks(4, 1), { engineName: 'nodes', nodes: { ...config().nodes, tls } })
  expect([...responses.values()].map(({ answer }) => answer)).toEqual([1, 2, 3, 4].map(() => daemon.pid))
})

test('a node with a wrong token is told so, and ends; the driver goes on with others', async () => {
  const wrong = join(folder, 'wrong')
  writeFileSync(wrong, 'mw_another-token-than-the-right-one', { mode: 0o600 })
  const run = Runners.runTask(manyTasks(4, 1), config())
  const stranger = startDaemon({ args: ['--connect', `ws://127.0.0.1:${port}`, '--token-file', wrong] })
  started.push(stranger)
  expect(await stranger.exited).toBe(1)
  expect(stranger.output()).toContain('it has another token than the one that was given')
  joining()
  expect((await run).size).toBe(4)
})

test('a node whose driver is not there gives up after a while', async () => {
  const lonely = joining('--give-up', '1s')
  expect(await lonely.exited).toBe(1)
  expect(lonely.output()).toContain('nothing listens there')
})
