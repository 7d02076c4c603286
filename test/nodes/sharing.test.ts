import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { DistributedExecutor, RemoteNodeExecutor, Runners } from '../../dist/index.js'
import { double, whereAmI } from '../agents/nodes.ts'
import { type Daemon, startNode } from './daemon.ts'

/** Several drivers, or several pools of one, on the same node. */

let node: Daemon
afterEach(async () => {
  await Runners.shutdown()
  await node.kill('SIGTERM')
})

test('workers that are kept warm and not used are given back when others want them', async () => {
  node = await startNode()
  const nodes = { addresses: [node.address] }
  const first = await Runners.runTask(
    [1, 2, 3, 4].map((n) => double.task(n)),
    { engineName: 'nodes', nodes },
  )
  expect(first.size).toBe(4)
  // Another environment makes another pool; the default is to keep the first one warm for a minute.
  const second = await Runners.runTask(double.task(5), { engineName: 'nodes', nodes, env: { A: 'b' } })
  expect(second.answer).toBe(10)
  await using executor = new RemoteNodeExecutor({ nodes: nodes.addresses })
  executor.submitTask(double.task(6))
  expect([...(await executor.collectResults()).values()][0]!.answer).toBe(12)
  // And the first has workers again when it needs them.
  const third = await Runners.runTask(
    [7, 8].map((n) => double.task(n)),
    { engineName: 'nodes', nodes },
  )
  expect([...third.values()].map(({ answer }) => answer)).toEqual([14, 16])
})

test('a driver that has to wait for workers gets them when another is done', async () => {
  node = await startNode({ args: ['--workers', '1'] })
  const nodes = { addresses: [node.address] }
  const busy = Runners.runTask(whereAmI.task(3000), { engineName: 'nodes', nodes, concurrency: 1 })
  await using executor = new DistributedExecutor({ engineName: 'nodes', nodes })
  executor.submitTask(double.task(1))
  expect((await busy).success).toBe(true)
  expect([...(await executor.collectResults()).values()][0]!.answer).toBe(2)
})

test('a node whose cache or work folder was removed gets the code again', async () => {
  const own = mkdtempSync(join(tmpdir(), 'mw-removed-'))
  node = await startNode({ args: ['--cache-dir', join(own, 'cache')], env: { ...process.env, TMPDIR: own } })
  const config = { engineName: 'nodes', nodes: { addresses: [node.address] }, keepWarmMs: 0 } as const
  expect((await Runners.runTask(double.task(1), config)).answer).toBe(2)
  for (const name of readdirSync(own)) rmSync(join(own, name), { recursive: true })
  expect((await Runners.runTask(double.task(2), config)).answer).toBe(4)
  rmSync(own, { recursive: true, force: true })
})
