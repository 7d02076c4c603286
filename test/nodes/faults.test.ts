import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { noting, whereAmI } from '../agents/nodes.ts'
import { childrenOf, signal } from '../process-tree.ts'
import { type Daemon, startNode } from './daemon.ts'
import { startProxy } from './proxy.ts'

/** Plugs are pulled while tasks run: every task is answered once, and right. */

let folder: string
let file: string
const started: Daemon[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-faults-'))
  file = join(folder, 'ledger')
})

afterEach(async () => {
  await Runners.shutdown()
  for (const daemon of started.splice(0)) {
    for (const pid of [daemon.pid, ...childrenOf(daemon.pid)]) signal(pid, 'SIGCONT')
    await daemon.kill('SIGKILL')
  }
  rmSync(folder, { recursive: true, force: true })
})

async function nodes(count: number): Promise<Daemon[]> {
  const daemons = await Promise.all(Array.from({ length: count }, () => startNode()))
  started.push(...daemons)
  return daemons
}

const addressesOf = (daemons: readonly { address: string }[]) => daemons.map(({ address }) => address)

const stopAll = (pid: number) => execFileSync('kill', ['-STOP', ...[pid, ...childrenOf(pid)].map(String)])
const continueAll = (pid: number) => execFileSync('kill', ['-CONT', ...[pid, ...childrenOf(pid)].map(String)])

function tasks(count: number, ms: number) {
  return Array.from({ length: count }, (_, i) => noting.task({ ms, file, id: `t${i}` }, { id: `t${i}` }))
}

async function ledgerHas(pattern: RegExp, times = 1): Promise<void> {
  await expect
    .poll(() => {
      try {
        return readFileSync(file, 'utf8').match(new RegExp(pattern, 'gm'))?.length ?? 0
      } catch {
        return 0
      }
    })
    .toBeGreaterThanOrEqual(times)
}

async function run(addresses: readonly string[], count: number, ms: number, concurrency = 4) {
  const lines: string[] = []
  const responses = Runners.runTask(tasks(count, ms), {
    engineName: 'nodes',
    nodes: { addresses },
    concurrency,
    maxAttempts: 1,
  })
  return { responses, lines }
}

function expectAllOnce(
  responses: ReadonlyMap<string, { success: boolean; answer?: unknown; attempts: number }>,
  count: number,
) {
  expect(responses.size).toBe(count)
  for (const [id, response] of responses) {
    expect(response.success, id).toBe(true)
    expect(response.answer).toBe(id)
    expect(response.attempts).toBe(1)
  }
}

test('a node that is killed with kill -9 loses nothing: its tasks go to the others', async () => {
  const daemons = await nodes(3)
  const { responses } = await run(addressesOf(daemons), 60, 400)
  await ledgerHas(/^end/, 5)
  const children = childrenOf(daemons[0]!.pid)
  expect(children.length).toBeGreaterThan(0)
  await daemons[0]!.kill('SIGKILL')
  expectAllOnce(await responses, 60)
  await expect.poll(() => children.filter((pid) => isAlive(pid))).toEqual([])
})

test('a worker that is killed is replaced by its node, without a new connection', async () => {
  const daemons = await nodes(2)
  const { responses } = await run(addressesOf(daemons), 40, 400)
  await ledgerHas(/^end/, 5)
  signal(childrenOf(daemons[0]!.pid)[0]!, 'SIGKILL')
  expectAllOnce(await responses, 40)
  expect(daemons[0]!.output()).not.toContain('has left')
})

test('a node that is lost is used again when it is back', async () => {
  const [first, second] = await nodes(2)
  const addresses = addressesOf([first!, second!])
  const { responses } = await run(addresses, 60, 300, 2)
  await ledgerHas(/^end/, 4)
  await first!.kill('SIGKILL')
  const again = await startNode({ port: first!.port })
  started.push(again)
  expectAllOnce(await responses, 60)
  // It may have come back when all was given out; the next run finds it.
  const pids = new Set<unknown>()
  await expect
    .poll(async () => {
      const found = await Runners.runTask(
        Array.from({ length: 16 }, () => whereAmI.task(50)),
        { engineName: 'nodes', nodes: { addresses }, concurrency: 2 },
      )
      for (const { answer } of found.values()) pids.add(answer)
      return pids.has(again.pid)
    })
    .toBe(true)
})

test('a node that is stopped with all its children counts as lost; when it goes on, what it says is too late', {
  timeout: 120_000,
}, async () => {
  const daemons = await nodes(2)
  const { responses } = await run(addressesOf(daemons), 16, 1500)
  await ledgerHas(/^start/, 8)
  stopAll(daemons[0]!.pid)
  const stoppedStarts = readFileSync(file, 'utf8')
  expectAllOnce(await responses, 16)
  const before = readFileSync(file, 'utf8')
  expect(before.split('\n').length).toBeGreaterThan(stoppedStarts.split('\n').length)
  continueAll(daemons[0]!.pid)
  // Its lease is over: what it was doing is ended, and the node can be used again.
  await expect.poll(() => daemons[0]!.output()).toContain('has left')
  const later = await Runners.runTask(tasks(8, 10), { engineName: 'nodes', nodes: { addresses: addressesOf(daemons) } })
  expectAllOnce(later, 8)
})

test('a link that is cut for ten seconds costs ten seconds, and no work', { timeout: 120_000 }, async () => {
  const [daemon] = await nodes(1)
  const proxy = await startProxy(daemon!.port)
  try {
    const { responses } = await run([`127.0.0.1:${proxy.port}`], 12, 3000)
    await ledgerHas(/^start/, 8)
    proxy.cut()
    await sleep(10_000)
    proxy.mend()
    expectAllOnce(await responses, 12)
    const starts = readFileSync(file, 'utf8').match(/^start/gm)!
    expect(starts.length).toBe(12)
  } finally {
    proxy.close()
  }
})

test('connections that break again and again cost no work', { timeout: 120_000 }, async () => {
  const [daemon] = await nodes(1)
  const proxy = await startProxy(daemon!.port)
  const breaking = setInterval(() => proxy.reset(), 300)
  try {
    const { responses } = await run([`127.0.0.1:${proxy.port}`], 300, 100)
    expectAllOnce(await responses, 300)
    expect(readFileSync(file, 'utf8').match(/^start/gm)!.length).toBe(300)
    expect(proxy.connections).toBeGreaterThan(3)
  } finally {
    clearInterval(breaking)
    proxy.close()
  }
})

test('a node that accepts and never answers holds up nobody', async () => {
  const silent = createServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  try {
    const [daemon] = await nodes(1)
    const { responses } = await run([`127.0.0.1:${port}`, daemon!.address], 20, 50)
    expectAllOnce(await responses, 20)
    const alone = Runners.runTask(tasks(1, 10), {
      engineName: 'nodes',
      nodes: { addresses: [`127.0.0.1:${port}`], waitMs: 7000 },
    })
    await expect(alone).rejects.toMatchObject({
      code: 'NODES_UNREACHABLE',
      message: expect.stringContaining('it did not answer within 5 s'),
    })
  } finally {
    silent.close()
  }
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z')
  } catch {
    return false
  }
}
